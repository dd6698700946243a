"""The dialect of the Gemini API: how requests are read, and how replies are written."""

from typing import Any

import pytest

from sessionmgr.model import Json, encode_json
from sessionmgr.testing.model_server import (
    ModelCall,
    ModelCut,
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
    TruncatedReply,
    UserPrompt,
    open_model_server,
    prompt_with,
)
from sessionmgr.testing.model_server.gemini import GeminiDialect
from sessionmgr.testing.model_server.http import HttpRequest
from tests.testing.model_server.client import HttpAnswer, connect_client, content

STREAM = "/v1beta/models/a-model:streamGenerateContent?alt=sse"
WHOLE = "/v1beta/models/a-model:generateContent"
SHELL: Json = {
    "name": "run_shell_command",
    "parameters": {
        "type": "OBJECT",
        "properties": {"command": {"type": "STRING"}, "is_background": {"type": "BOOLEAN"}},
        "required": ["command", "is_background"],
    },
}
TOOLS: Json = [{"functionDeclarations": [SHELL]}, {"googleSearch": {}}]


def read(*said: Json, **more: Json) -> ModelRequest:
    found = GeminiDialect().read(
        HttpRequest("POST", STREAM, {}, encode_json(content(*said, **more)))
    )
    assert isinstance(found, ModelRequest)
    return found


async def ask(*moves: ModelReply, target: str = STREAM, **more: Json) -> HttpAnswer:
    async with open_model_server() as server, connect_client(server) as client:
        return await client.ask("POST", target, content(prompt_with(moves), **more))


def parts(answer: HttpAnswer) -> list[dict[str, Any]]:
    return [part for each in answer.events() for part in each["candidates"][0]["content"]["parts"]]


def test_a_conversation_is_read_without_the_context_of_the_agent() -> None:
    request = read(
        "<session_context>\nThis is an agent.\n</session_context>",
        "hi",
        {
            "role": "model",
            "parts": [
                {"text": "hm", "thought": True},
                {"text": ""},
                {"text": "hello"},
                {"functionCall": {"id": "c", "name": "run_shell_command", "args": {}}},
                {"functionCall": {"name": "read_file"}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "c", "name": "x", "response": {"output": "ran"}}},
                {"functionResponse": {"name": "x", "response": {"error": "no"}}},
                {"functionResponse": {"name": "x", "response": {"a": 1}}},
                {"fileData": {}},
            ],
        },
        tools=TOOLS,
    )
    assert request.items == (
        UserPrompt("hi"),
        ModelMessage("hello"),
        ModelToolCall("c", "run_shell_command"),
        ModelToolCall("", "read_file"),
        ModelToolResult("c", "ran"),
        ModelToolResult("", "no", failed=True),
        ModelToolResult("", '{"a":1}'),
    )
    assert [offer.name for offer in request.tools] == ["run_shell_command"]
    assert request.model == "a-model"


def test_the_messages_of_the_agent_itself_are_no_replies() -> None:
    acknowledged = "Got it. Thanks for the additional context!"
    nudge = "\n[System: You previously returned an empty response with no tool calls.]"
    request = read("hi", {"role": "model", "parts": [{"text": acknowledged}]}, "and?", nudge)
    assert request.items == (UserPrompt("hi"), UserPrompt("and?"), TruncatedReply())


def test_a_session_is_known_by_its_context() -> None:
    first = "<session_context>in /a</session_context>"
    assert read(first, "hi").session == read(first, "and?").session != ""
    assert read("hi").session == read().session == ""


async def test_a_reply_is_streamed() -> None:
    reply: ModelReply = [
        ModelThink(text="hm", deltas=2),
        ModelSay(text="hello", deltas=5),
        ModelCall(tool="shell", input={"command": "ls"}),
        ModelCall(tool="shell", broken='{"command": 1}'),
        ModelCall(tool="shell", broken="{no"),
        ModelUse(input=1, cached_input=2, output=4, reasoning=3),
        ModelLimits(used=0.25, resets_at=0),
    ]
    answer = await ask(reply, tools=TOOLS)
    found = parts(answer)
    assert "".join(each["text"] for each in found if each.get("thought")) == "hm"
    assert [each["text"] for each in found if "text" in each][2:] == list("hello")
    calls = [each["functionCall"] for each in found if "functionCall" in each]
    assert [each["args"] for each in calls] == [
        {"is_background": False, "command": "ls"},
        {"command": 1},
        {"arguments": "{no"},
    ]
    assert len({each["id"] for each in calls}) == 3
    last = answer.events()[-1]
    assert last["candidates"][0]["finishReason"] == "STOP"
    assert last["usageMetadata"] == {
        "promptTokenCount": 3,
        "cachedContentTokenCount": 2,
        "candidatesTokenCount": 1,
        "thoughtsTokenCount": 3,
        "totalTokenCount": 7,
    }


async def test_a_reply_comes_as_a_whole_without_a_stream() -> None:
    reply: ModelReply = [ModelSay(text="hello"), ModelStop(reason="max_tokens")]
    [candidate] = (await ask(reply, target=WHOLE)).json()["candidates"]
    assert candidate["content"]["parts"] == [{"text": "hello"}]
    assert candidate["finishReason"] == "MAX_TOKENS"


async def test_an_empty_answer_has_an_end_and_no_parts() -> None:
    answer = await ask([])
    assert (len(answer.events()), parts(answer)) == (1, [])


@pytest.mark.parametrize(
    ("refusal", "status", "kind", "details"),
    [
        (ModelRefuse(status=401), 401, "UNAUTHENTICATED", []),
        (ModelRefuse(status=403), 403, "PERMISSION_DENIED", []),
        (ModelRefuse(status=429), 429, "RESOURCE_EXHAUSTED", ["PerMinute"]),
        (ModelRefuse(status=429, retry_after=2), 429, "RESOURCE_EXHAUSTED", ["PerMinute", '"2s"']),
        (ModelUsageLimit(resets_at=12), 429, "RESOURCE_EXHAUSTED", ["PerDay", "RetryInfo"]),
        (ModelRefuse(status=500), 500, "INTERNAL", []),
        (ModelRefuse(status=503), 503, "UNAVAILABLE", []),
        (ModelRefuse(status=418, kind="TEAPOT"), 418, "TEAPOT", []),
        (ModelRefuse(status=418), 418, "UNKNOWN", []),
    ],
)
async def test_a_reply_may_be_refused(
    refusal: ModelRefuse, status: int, kind: str, details: list[str]
) -> None:
    answer = await ask([refusal])
    error = answer.json()["error"]
    assert (answer.status, error["code"], error["status"]) == (status, status, kind)
    assert len(error.get("details", [])) == len(details)
    assert [each for each in details if each not in answer.body.decode()] == []


async def test_a_stream_may_break() -> None:
    fault = await ask([ModelSay(text="half"), ModelFault(kind="INTERNAL")])
    assert fault.events()[-1]["error"]["code"] == 500
    fault = await ask([ModelSay(text="half"), ModelFault()])
    assert fault.events()[-1]["error"]["status"] == "UNAVAILABLE"
    cut = await ask([ModelSay(text="half"), ModelCut()])
    assert (cut.status, cut.whole) == (200, False)
    malformed = await ask([ModelMalformed()])
    assert b"data: {not json\n\n" in malformed.body


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"responseMimeType": "application/json"}, "{}"),
        (
            {
                "responseSchema": {
                    "type": "OBJECT",
                    "properties": {"n": {"type": "INTEGER"}},
                    "required": ["n"],
                }
            },
            '{"n":0}',
        ),
        ({"responseJsonSchema": {"const": "a"}}, '"a"'),
    ],
)
async def test_a_request_for_json_gets_json(config: Json, said: str) -> None:
    async with open_model_server() as server, connect_client(server) as client:
        answer = await client.ask("POST", WHOLE, content("hi", generationConfig=config))
    assert answer.json()["candidates"][0]["content"]["parts"] == [{"text": said}]


async def test_other_methods_are_answered_or_refused() -> None:
    async with open_model_server() as server, connect_client(server) as client:
        models = (await client.ask("GET", "/v1beta/models?pageSize=9")).json()["models"]
        assert [each["name"] for each in models] == ["models/scripted"]
        assert (await client.ask("GET", "/v1beta/models/m")).json()["name"] == "models/m"
        count = await client.ask("POST", "/v1beta/models/m:countTokens", content("hi"))
        assert count.json()["totalTokens"] > 0
        plain = STREAM.partition("?")[0]
        refused = await client.ask("POST", plain, content("hi"))
        assert (refused.status, "alt=sse" in refused.json()["error"]["message"]) == (400, True)
        assert (await client.ask("POST", WHOLE, ["no", "object"])).status == 400
        assert (await client.ask("POST", "/v1beta/models/m:embedContent", {})).status == 404
