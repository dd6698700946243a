"""The dialect of OpenAI Chat Completions: how requests are read, and how replies are written."""

from typing import Any

import msgspec
import pytest

from sessionmgr.model import Json, encode_json
from sessionmgr.testing.model_server import (
    ModelCall,
    ModelCut,
    ModelEmpty,
    ModelFault,
    ModelLimits,
    ModelMalformed,
    ModelMessage,
    ModelRefuse,
    ModelReply,
    ModelRequest,
    ModelSay,
    ModelStop,
    ModelThink,
    ModelToolCall,
    ModelToolResult,
    ModelUsageLimit,
    ModelUse,
    ToolOffer,
    TruncatedReply,
    UserInterrupt,
    UserPrompt,
    open_model_server,
    prompt_with,
)
from sessionmgr.testing.model_server.chat import ChatDialect
from sessionmgr.testing.model_server.choose_reply import choose_reply
from sessionmgr.testing.model_server.http import HttpRequest
from tests.testing.model_server.client import HttpAnswer, completion, connect_client

PATH = "/v1/chat/completions"
BASH: Json = {
    "type": "function",
    "function": {
        "name": "bash",
        "parameters": {
            "type": "object",
            "properties": {"command": {"type": "string"}, "description": {"type": "string"}},
            "required": ["command", "description"],
        },
    },
}


def read(*said: Json, headers: dict[str, str] | None = None, **more: Json) -> ModelRequest:
    body = encode_json(completion(*said, stream=True, **more))
    found = ChatDialect().read(HttpRequest("POST", PATH, headers or {}, body))
    assert isinstance(found, ModelRequest)
    return found


async def ask(*moves: ModelReply, stream: bool = True, **more: Json) -> HttpAnswer:
    body = completion(prompt_with(moves), stream=stream, **more)
    async with open_model_server() as server, connect_client(server) as client:
        return await client.ask("POST", PATH, body)


def pieces(answer: HttpAnswer) -> list[dict[str, Any]]:
    """Return the data of the events before the mark of the end."""
    lines = answer.body.decode().removesuffix("data: [DONE]\n\n").split("\n\n")
    return [msgspec.json.decode(line.removeprefix("data: ")) for line in lines if line]


def test_a_conversation_is_read_without_the_reminders_of_the_agent() -> None:
    call: Json = {"id": "c", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    request = read(
        {"role": "system", "content": "be good"},
        "<system-reminder>\nbe good\n</system-reminder>\nhi\n<info-msg>\nIt is late.\n</info-msg>",
        {"role": "assistant", "content": "hello", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "ran"}]},
        {"role": "user", "content": [{"type": "text", "text": "and?"}, {"type": "image_url"}]},
        {"role": "user", "content": "<system-reminder>be better</system-reminder>"},
        tools=[BASH, {"type": "web_search"}],
    )
    assert request.items == (
        UserPrompt("hi"),
        ModelMessage("hello"),
        ModelToolCall("c", "bash"),
        ModelToolResult("c", "ran"),
        UserPrompt("and?"),
    )
    assert [offer.name for offer in request.tools] == ["bash"]
    assert isinstance(request.tools[0], ToolOffer)


def test_a_reply_that_is_to_be_continued_was_broken_off() -> None:
    half: Json = {"role": "assistant", "content": "half"}
    assert read("hi", half, half).items == (
        UserPrompt("hi"),
        *(ModelMessage("half"), TruncatedReply()) * 2,
    )


def test_a_prompt_that_got_no_reply_was_interrupted() -> None:
    reminder = "<system-reminder>be good</system-reminder>"
    assert read("hi", reminder, "and?").items == (
        UserPrompt("hi"),
        UserInterrupt(),
        UserPrompt("and?"),
    )


def test_a_message_of_the_agent_in_the_name_of_the_model_is_no_reply() -> None:
    said: Json = {"role": "assistant", "content": "Your context was compacted. Go on."}
    assert read("a summary", said, "and?").items == (UserPrompt("a summary"), UserPrompt("and?"))


def test_the_conversation_for_a_summary_may_be_in_the_instructions() -> None:
    script = prompt_with([[ModelSay(text="a")], [ModelSay(text="b")]])
    system = f"An llm context limit was reached.\n[User]: {script}\n[Assistant]: a"
    request = read({"role": "system", "content": system}, "Please summarize it.")
    assert request.purpose == "compaction"
    [summary] = choose_reply(request).reply
    assert isinstance(summary, ModelSay)
    for before in ((), (script,)):  # some agents keep the prompts
        assert choose_reply(read(*before, summary.text, "go on")).reply == (ModelSay(text="b"),)


async def test_a_tool_without_a_schema_is_called_with_a_text() -> None:
    patch: Json = {"type": "custom", "custom": {"name": "apply_patch", "description": ""}}
    reply: ModelReply = [ModelCall(tool="write", input={"path": "a", "content": "b"})]
    answer = await ask(reply, tools=[patch])
    calls = [
        call
        for each in pieces(answer)
        for call in each["choices"][0]["delta"].get("tool_calls", ())
    ]
    assert (calls[0]["type"], calls[0]["custom"]["name"]) == ("custom", "apply_patch")
    text = "".join(each["custom"]["input"] for each in calls)
    assert text == "*** Begin Patch\n*** Add File: a\n+b\n*** End Patch"
    made: Json = {"id": "c", "type": "custom", "custom": {"name": "apply_patch", "input": text}}
    request = read("hi", {"role": "assistant", "tool_calls": [made]}, {"role": "tool"})
    assert request.items == (UserPrompt("hi"), ModelToolCall("c", "apply_patch"))


def test_a_session_is_known_by_a_header_or_by_its_key_for_the_cache() -> None:
    assert read("hi", headers={"x-session-id": "s"}).session == "s"
    assert read("hi", prompt_cache_key="k").session == "k"
    assert read("hi").session == ""
    assert read({"role": "system", "content": "in /a"}, "hi").session != ""


async def test_a_completion_is_streamed() -> None:
    reply: ModelReply = [
        ModelThink(text="hm", deltas=2),
        ModelSay(text="hello", deltas=5),
        ModelCall(tool="shell", input={"command": "ls"}),
        ModelCall(tool="shell", input={"command": "pwd"}),
        ModelUse(input=1, cached_input=2, output=4, reasoning=3),
        ModelLimits(used=0.25, resets_at=0),
    ]
    options: Json = {"include_usage": True}
    answer = await ask(reply, tools=[BASH], stream_options=options)
    assert answer.headers["x-ratelimit-remaining-requests"] == "750"
    assert answer.headers["x-ratelimit-reset-requests"] == "0s"
    assert answer.body.endswith(b"data: [DONE]\n\n")
    *found, usage = pieces(answer)
    deltas = [each["choices"][0]["delta"] for each in found]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert [each["content"] for each in deltas[1:] if "content" in each] == list("hello")
    assert "".join(each.get("reasoning_content", "") for each in deltas) == "hm"
    calls: dict[int, list[dict[str, Any]]] = {}
    for each in (call for delta in deltas for call in delta.get("tool_calls", ())):
        calls.setdefault(each["index"], []).append(each)
    assert [[len(parts), parts[0]["function"]["name"]] for parts in calls.values()] == [
        [3, "bash"],
        [3, "bash"],
    ]
    written = ["".join(part["function"]["arguments"] for part in each) for each in calls.values()]
    assert [msgspec.json.decode(each) for each in written] == [
        {"command": "ls", "description": "sample"},
        {"command": "pwd", "description": "sample"},
    ]
    assert found[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert (usage["choices"], usage["usage"]) == (
        [],
        {
            "prompt_tokens": 3,
            "completion_tokens": 4,
            "total_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 2},
            "completion_tokens_details": {"reasoning_tokens": 3},
        },
    )


async def test_usage_comes_with_a_stream_only_on_request() -> None:
    answer = await ask([ModelSay(text="a")])
    assert not [each for each in pieces(answer) if "usage" in each]


async def test_a_completion_comes_as_a_whole_without_a_stream() -> None:
    reply: ModelReply = [
        ModelThink(text="hm"),
        ModelSay(text="hello"),
        ModelCall(tool="shell", input={"command": "ls"}, broken="{no"),
    ]
    whole = (await ask(reply, stream=False, tools=[BASH])).json()
    [choice] = whole["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("hello", "tool_calls")
    assert choice["message"]["reasoning_content"] == "hm"
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "bash", "arguments": "{no"}
    assert whole["usage"]["completion_tokens"] > 0


@pytest.mark.parametrize(
    ("reason", "finish"), [("max_tokens", "length"), ("refusal", "content_filter")]
)
async def test_a_completion_has_a_reason_for_its_end(reason: Any, finish: str) -> None:
    answer = await ask([ModelStop(reason=reason)])
    assert pieces(answer)[-1]["choices"][0]["finish_reason"] == finish


@pytest.mark.parametrize("reply", [[], [ModelEmpty(), ModelSay(text="a")]])
async def test_an_empty_answer_has_an_end_and_no_text(reply: ModelReply) -> None:
    found = pieces(await ask(reply))
    assert [each["choices"][0]["delta"] for each in found] == [
        {"role": "assistant", "content": ""},
        {},
    ]


@pytest.mark.parametrize(
    ("refusal", "status", "code", "headers"),
    [
        (ModelRefuse(status=401), 401, "invalid_api_key", {}),
        (ModelRefuse(status=403), 403, "unsupported_country_region_territory", {}),
        (ModelRefuse(status=429, retry_after=2), 429, "rate_limit_exceeded", {"retry-after": "2"}),
        (ModelUsageLimit(resets_at=12), 429, "insufficient_quota", {}),
        (ModelRefuse(status=500), 500, "server_error", {}),
        (ModelRefuse(status=503, kind="overloaded"), 503, "overloaded", {}),
    ],
)
async def test_a_completion_may_be_refused(
    refusal: ModelRefuse, status: int, code: str, headers: dict[str, str]
) -> None:
    answer = await ask([refusal])
    assert (answer.status, answer.json()["error"]["code"]) == (status, code)
    assert answer.headers.items() >= headers.items()


async def test_a_stream_may_break() -> None:
    fault = await ask([ModelSay(text="half"), ModelFault(kind="k")])
    assert pieces(fault)[-1]["error"]["code"] == "k"
    assert b"[DONE]" not in fault.body
    cut = await ask([ModelSay(text="half"), ModelCut()])
    assert (cut.status, cut.whole) == (200, False)
    orderly = await ask([ModelSay(text="half"), ModelCut(orderly=True)])
    assert (orderly.whole, pieces(orderly)[-1]["choices"][0]["delta"]) == (
        True,
        {"content": "half"},
    )
    assert b"[DONE]" not in orderly.body
    malformed = await ask([ModelMalformed()])
    assert b"data: {not json\n\n" in malformed.body


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"type": "json_object"}, "{}"),
        (
            {
                "type": "json_schema",
                "json_schema": {
                    "schema": {
                        "type": "object",
                        "properties": {"n": {"type": "integer"}},
                        "required": ["n"],
                    }
                },
            },
            '{"n":0}',
        ),
    ],
)
async def test_a_request_for_json_gets_json(form: Json, said: str) -> None:
    async with open_model_server() as server, connect_client(server) as client:
        body = completion("hi", stream=False, response_format=form)
        answer = (await client.ask("POST", PATH, body)).json()
    assert answer["choices"][0]["message"]["content"] == said


async def test_models_are_listed_and_other_bodies_refused() -> None:
    async with open_model_server() as server, connect_client(server) as client:
        models = (await client.ask("GET", "/v1/models")).json()
        assert [each["id"] for each in models["data"]] == ["scripted"]
        assert (await client.ask("GET", "/v1/models/a/b")).json()["id"] == "a/b"
        assert (await client.ask("POST", PATH, {"no": "messages"})).status == 400
        assert (await client.ask("POST", f"/api{PATH}", completion("hi"))).status == 200
        assert (await client.ask("GET", "http://example.invalid/v1/models")).status == 403
    assert server.log.strangers == ["GET http://example.invalid/v1/models"]
