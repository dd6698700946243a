"""The two dialects: how their requests are read, and how replies are written."""

from pathlib import Path

import pytest
import trio

from sessionmgr.model import Json, encode_json
from sessionmgr.testing.model_server import (
    ModelCall,
    ModelFault,
    ModelLimits,
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
from sessionmgr.testing.model_server.anthropic import AnthropicDialect
from sessionmgr.testing.model_server.http import HttpRequest
from sessionmgr.testing.model_server.responses import ResponsesDialect
from tests.testing.model_server.client import connect_client, message, messages, response


def read(
    face: AnthropicDialect | ResponsesDialect, path: str, body: Json, **headers: str
) -> ModelRequest:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    found = face.read(HttpRequest("POST", path, named, encode_json(body)))
    assert isinstance(found, ModelRequest)
    return found


def anthropic(*said: Json, **more: Json) -> ModelRequest:
    return read(AnthropicDialect(), "/v1/messages", messages(*said, stream=True, **more))


def responses(*said: Json, **more: Json) -> ModelRequest:
    return read(ResponsesDialect(), "/v1/responses", response(*said, stream=True, **more))


def test_what_claude_code_puts_in_is_no_prompt() -> None:
    request = anthropic(
        message("user", "<system-reminder>\nbe good\n</system-reminder>", "hi"),
        message("assistant", {"type": "thinking", "thinking": "hm"}, "hello"),
        message("system", "The date is another one now."),
        message("user", "[Request interrupted by user]"),
        message("user", "Your response above was cut off mid-stream. Resume."),
        message("user", {"type": "image", "source": {}}),
        {"role": "user", "content": "and?"},
    )
    assert request.items == (
        UserPrompt("hi"),
        ModelMessage("hello"),
        UserInterrupt(),
        TruncatedReply(),
        UserPrompt("and?"),
    )


@pytest.mark.parametrize(
    "after", ["", "\n\nIMPORTANT: do not ignore it.", "\n\nThis is how Claude Code"]
)
def test_a_message_to_a_running_turn_is_a_prompt(after: str) -> None:
    said = f"The user sent a new message while you were working:\nLook!\n\nHere.{after}"
    request = anthropic("hi", {"role": "system", "content": said})
    assert request.items == (UserPrompt("hi"), UserPrompt("Look!\n\nHere."))


def test_results_of_tools_come_as_texts() -> None:
    result: dict[str, Json] = {"type": "tool_result", "tool_use_id": "1", "is_error": True}
    blocks: Json = [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]
    request = anthropic(
        message("assistant", {"type": "tool_use", "id": "1", "name": "Bash", "input": {}}),
        message("user", {**result, "content": blocks}, {**result, "content": None}),
    )
    failed = (ModelToolResult("1", "a\nb", failed=True), ModelToolResult("1", "", failed=True))
    assert request.items == (ModelToolCall("1", "Bash"), *failed)


def test_what_claude_code_asks_for_is_told_apart() -> None:
    summary = "CRITICAL: text only.\n\nYour task is to create a detailed summary of it."
    assert anthropic("hi").purpose == "turn"
    assert anthropic("hi", summary).purpose == "compaction"
    assert anthropic("test", max_tokens=1).purpose == "probe"


@pytest.mark.parametrize(
    "user",
    [
        "user_abc_account__session_0c9c0a61-7b5e-4b8e-9f5f-000000000000",
        '{"device_id": "x", "session_id": "0c9c0a61-7b5e-4b8e-9f5f-000000000000"}',
    ],
)
def test_a_session_is_known_by_its_header_or_by_its_user(user: str) -> None:
    session = "0c9c0a61-7b5e-4b8e-9f5f-000000000000"
    assert anthropic("hi", metadata={"user_id": user}).session == session
    body = messages("hi")
    by_header = read(AnthropicDialect(), "/v1/messages", body, x_claude_code_session_id="s")
    assert by_header.session == "s"
    assert anthropic("hi").session == ""


def test_what_codex_puts_in_is_no_prompt() -> None:
    request = responses(
        {"type": "message", "role": "developer", "content": "be good"},
        "<environment_context>\n</environment_context>",
        "hi",
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": "1", "name": "exec_command", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": "ran"},
        {"type": "custom_tool_call", "call_id": "2", "name": "apply_patch", "input": ""},
        {
            "type": "custom_tool_call_output",
            "call_id": "2",
            "output": [{"type": "input_text", "text": "patched"}],
        },
        {"role": "assistant", "content": [{"type": "output_text", "text": "hello"}]},
        "<turn_aborted>\nby the user\n</turn_aborted>",
    )
    ran = (ModelToolCall("1", "exec_command"), ModelToolResult("1", "ran"))
    patched = (ModelToolCall("2", "apply_patch"), ModelToolResult("2", "patched"))
    assert request.items == (
        UserPrompt("hi"),
        *ran,
        *patched,
        ModelMessage("hello"),
        UserInterrupt(),
    )


def test_tools_of_codex_have_names_of_their_own_or_in_a_namespace() -> None:
    function: Json = {"type": "function", "name": "f", "parameters": {"type": "object"}}
    custom: Json = {"type": "custom", "name": "c"}
    inner: Json = {"type": "namespace", "name": "mcp__lab", "tools": [function]}
    own: Json = {"type": "namespace", "name": "functions", "tools": [custom]}
    more: Json = {"type": "additional_tools", "role": "developer", "tools": [own]}
    request = responses("hi", more, tools=[function, inner, {"type": "web_search"}])
    schema: Json = {"type": "object"}
    assert isinstance(schema, dict)
    assert request.tools == (
        ToolOffer("f", schema),
        ToolOffer("mcp__lab__f", schema, "mcp__lab"),
        ToolOffer("c", None),
    )


def test_what_codex_asks_for_is_told_apart() -> None:
    assert responses("You are performing a CONTEXT CHECKPOINT COMPACTION.").purpose == "compaction"
    text: Json = {"format": {"type": "json_schema", "schema": {"type": "object"}}}
    assert responses("hi", text=text).schema == {"type": "object"}
    assert read(ResponsesDialect(), "/v1/responses", {"input": "hi"}).prompt == "hi"
    assert read(ResponsesDialect(), "/v1/responses", response("hi"), thread_id="t").session == "t"


async def test_a_response_is_streamed() -> None:
    reply: ModelReply = [
        ModelThink(text="hm", deltas=2),
        ModelSay(text="hello", deltas=5),
        ModelCall(tool="mcp__lab__add", input={"a": 1}),
        ModelUse(input=1, cached_input=2, output=4, reasoning=3),
        ModelLimits(used=0.25, resets_at=12),
    ]
    async with open_model_server() as server, connect_client(server) as client:
        answer = await client.ask("POST", "/v1/responses", response(prompt_with([reply])))
    assert answer.headers["x-codex-primary-used-percent"] == "25"
    events = answer.events()
    said = [each["delta"] for each in events if each["type"] == "response.output_text.delta"]
    assert said == list("hello")
    done = [each["item"] for each in events if each["type"] == "response.output_item.done"]
    assert [each["type"] for each in done] == ["reasoning", "message", "function_call"]
    assert (done[2]["namespace"], done[2]["name"]) == ("mcp__lab", "add")
    assert done[2]["arguments"] == '{"a":1}'
    last = events[-1]
    assert last["type"] == "response.completed"
    assert last["response"]["output"] == done
    assert last["response"]["usage"] == {
        "input_tokens": 3,
        "input_tokens_details": {"cached_tokens": 2},
        "output_tokens": 4,
        "output_tokens_details": {"reasoning_tokens": 3},
        "total_tokens": 7,
    }


@pytest.mark.parametrize(
    ("reply", "kind", "field", "value"),
    [
        ([ModelFault(kind="cyber_policy")], "response.failed", "error", None),
        ([ModelStop(reason="max_tokens")], "response.incomplete", "incomplete_details", None),
        ([ModelStop(reason="pause_turn")], "response.completed", "end_turn", False),
    ],
)
async def test_a_response_may_end_otherwise(
    reply: ModelReply, kind: str, field: str, value: Json
) -> None:
    said: ModelReply = [ModelSay(text="so far", whole=False), *reply]
    async with open_model_server() as server, connect_client(server) as client:
        answer = await client.ask("POST", "/v1/responses", response(prompt_with([said])))
    last = answer.events()[-1]
    assert last["type"] == kind
    assert last["response"][field] is value or isinstance(last["response"][field], dict)


async def test_a_response_comes_as_a_whole_to_who_does_not_stream() -> None:
    said: ModelReply = [
        ModelSay(text="hello"),
        ModelCall(tool="apply_patch", input={"text": "x"}, broken="y"),
    ]
    offers: Json = [{"type": "custom", "name": "apply_patch"}]
    body = response(prompt_with([said]), stream=False, tools=offers)
    async with open_model_server() as server, connect_client(server) as client:
        whole = (await client.ask("POST", "/v1/responses", body)).json()
    assert (whole["status"], whole["output"][1]["input"]) == ("completed", "y")


@pytest.mark.parametrize(
    ("refusal", "status", "code"),
    [
        (ModelRefuse(status=429, retry_after=2), 429, "rate_limit_exceeded"),
        (ModelRefuse(status=503, kind="server_is_overloaded"), 503, "server_is_overloaded"),
        (ModelUsageLimit(resets_at=12), 429, "usage_limit_reached"),
    ],
)
def test_a_response_may_be_refused(
    refusal: ModelRefuse | ModelUsageLimit, status: int, code: str
) -> None:
    plain = ResponsesDialect().refuse(refusal)
    assert isinstance(plain.body, dict)
    error = plain.body["error"]
    assert isinstance(error, dict)
    assert (plain.status, error["code"]) == (status, code)
    if isinstance(refusal, ModelUsageLimit):
        assert plain.headers["x-codex-primary-reset-at"] == "12"


async def test_what_is_no_request_for_a_response_is_told_so() -> None:
    async with open_model_server() as server, connect_client(server) as client:
        answer = await client.ask("POST", "/v1/responses", ["no", "object"])
        assert answer.status == 400


@pytest.mark.parametrize("deltas", [1, 3])
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses"])
async def test_what_follows_the_first_delta_of_a_text_waits_for_a_file(
    tmp_path: Path, path: str, deltas: int
) -> None:
    gate = tmp_path / "gate"
    reply: ModelReply = [
        ModelSay(text="abc", deltas=deltas, until=str(gate)),
        ModelSay(text="and so on"),
    ]
    body = (messages if path == "/v1/messages" else response)(prompt_with([reply]))
    async with open_model_server() as server, connect_client(server) as client:
        await client.send("POST", path, body)
        await client.heard(b'"a' if deltas == 3 else b'"abc')
        with trio.move_on_after(0.1):
            await client.heard(b"and so on")
            raise AssertionError("it did not wait")
        gate.touch()
        answer = await client.receive()
    assert answer.whole
    assert answer.body.count(b"delta") >= deltas
    assert b"and so on" in answer.body
