"""Laws of the writers of all dialects: a stream says what the whole reply says."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from sessionmgr.model import Json, encode_json
from sessionmgr.testing.model_server import (
    ModelCall,
    ModelReply,
    ModelRequest,
    ModelSay,
    ModelThink,
)
from sessionmgr.testing.model_server.chat import ChatDialect
from sessionmgr.testing.model_server.dialect import ApiDialect, ReplyWriter
from sessionmgr.testing.model_server.gemini import GeminiDialect
from sessionmgr.testing.model_server.http import HttpRequest
from sessionmgr.wire import ServerEvent, ServerEventDecoder
from tests.testing.model_server.client import completion, content

Said = tuple[str, str, list[Any]]
"""The text, the reasoning, and the calls of a reply."""

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
inputs = st.dictionaries(texts, texts | st.integers(-9, 9), max_size=2)
moves = (
    st.builds(ModelSay, text=texts, deltas=st.integers(1, 9))
    | st.builds(ModelThink, text=texts, deltas=st.integers(1, 9))
    | st.builds(ModelCall, tool=texts.filter(bool), input=inputs)
)


def written(reply: ModelReply, writer: ReplyWriter) -> bytes:
    parts = [writer.open()]
    for move in reply:
        assert isinstance(move, ModelSay | ModelThink | ModelCall)
        parts += [each.data for each in writer.encode_move(move)]
    return b"".join([*parts, writer.close()])


def events(stream: bytes) -> Iterator[Any]:
    for each in ServerEventDecoder().feed(stream):
        assert isinstance(each, ServerEvent)
        if bytes(each.data) != b"[DONE]":
            yield msgspec.json.decode(each.data)


def of_chat(messages: list[Any]) -> Said:
    text = "".join(each.get("content") or "" for each in messages)
    thought = "".join(each.get("reasoning_content", "") for each in messages)
    calls: dict[int, list[str]] = {}
    for message in messages:
        for number, call in enumerate(message.get("tool_calls", ())):
            into = calls.setdefault(call.get("index", number), ["", ""])
            into[0] += call["function"].get("name", "")
            into[1] += call["function"]["arguments"]
    return text, thought, [[name, msgspec.json.decode(given)] for name, given in calls.values()]


def of_gemini(responses: list[Any]) -> Said:
    parts = [part for each in responses for part in each["candidates"][0]["content"]["parts"]]
    texts = [part for part in parts if "text" in part]
    called = [part["functionCall"] for part in parts if "functionCall" in part]
    return (
        "".join(part["text"] for part in texts if not part.get("thought")),
        "".join(part["text"] for part in texts if part.get("thought")),
        [[call["name"], call["args"]] for call in called],
    )


def request_of(dialect: ApiDialect, path: str, body: Json) -> ModelRequest:
    request = dialect.read(HttpRequest("POST", path, {}, encode_json(body)))
    assert isinstance(request, ModelRequest)
    return request


@given(reply=st.lists(moves, max_size=5))
@pytest.mark.parametrize("name", ["chat", "gemini"])
def test_a_stream_says_what_the_whole_reply_says(name: str, reply: ModelReply) -> None:
    dialect: ApiDialect
    if name == "chat":
        dialect = ChatDialect()
        request = request_of(dialect, "/v1/chat/completions", completion("hi"))
    else:
        dialect = GeminiDialect()
        path = "/v1beta/models/m:streamGenerateContent?alt=sse"
        request = request_of(dialect, path, content("hi"))
    writer = dialect.reply_writer(request, 0, None, None)
    streamed = list(events(written(reply, writer)))
    whole: Any = msgspec.json.decode(encode_json(writer.whole()))
    if name == "chat":
        deltas = [each["choices"][0]["delta"] for each in streamed]
        found, expected = of_chat(deltas), of_chat([whole["choices"][0]["message"]])
    else:
        found, expected = of_gemini(streamed), of_gemini([whole])
    assert found == expected
    assert found[0] == "".join(move.text for move in reply if isinstance(move, ModelSay))
    assert found[1] == "".join(move.text for move in reply if isinstance(move, ModelThink))
    assert len(found[2]) == len([move for move in reply if isinstance(move, ModelCall)])
