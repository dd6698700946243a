"""Claude Code as a script for a mock SDK: it executes the orders in its prompt."""

from __future__ import annotations

from itertools import count
from typing import Final

import trio

from sessionmgr.adapter import Allow
from sessionmgr.model import Json
from sessionmgr.testing.mock_sdk import INTERRUPTED, MockConversation, SentAnswer
from sessionmgr.wire import NoFrame
from sessionmgr_adapters.claude.frames import (
    AssistantFrame,
    ClaudeDelta,
    ClaudeFrame,
    ClaudeMessage,
    ControlReplyBody,
    ControlReplyFrame,
    HostRequest,
    HostRequestBody,
    MessageLifecycle,
    ResultFrame,
    StreamedApiEvent,
    StreamEventFrame,
    SystemFrame,
    TextBlock,
    ToolResult,
    ToolUse,
    UserFrame,
)
from sessionmgr_adapters.claude.launch import ClaudeSpec
from sessionmgr_adapters.claude.outgoing import ClaudeOutgoing, ClaudeUserMessage, ControlRequest

Talk = MockConversation[ClaudeOutgoing, ClaudeFrame | NoFrame]
NUMBERS: Final = count(1)
ACCOUNT: Final[dict[str, Json]] = {"apiKeySource": "ANTHROPIC_API_KEY", "tokenSource": "none"}
HELLO: Final[dict[str, Json]] = {
    "claude_code_version": "2.1.327",
    "account": ACCOUNT,
    "current_permission_mode": "default",
}
MODES: Final = {"default", "plan", "acceptEdits", "bypassPermissions"}


def session_of(it: Talk) -> str:
    assert isinstance(it.opening, ClaudeSpec)
    return it.opening.session


def running() -> SystemFrame:
    return SystemFrame(subtype="session_state_changed", state="running")


def idle() -> SystemFrame:
    return SystemFrame(subtype="session_state_changed", state="idle")


def init(session: str, mode: str = "default") -> SystemFrame:
    return SystemFrame(
        subtype="init",
        session_id=session,
        model="claude-opus-5-5",
        permission_mode=mode,
        version="2.1.327",
        capabilities=["msg_lifecycle_v1"],
    )


def text(words: str, *, name: str | None = None) -> list[ClaudeFrame]:
    """Return the frames of a message, streamed and complete."""
    name = name or f"msg{next(NUMBERS)}"
    deltas: list[ClaudeFrame] = [
        StreamEventFrame(
            event=StreamedApiEvent(type="content_block_delta", delta=ClaudeDelta(text=letter)),
            api_message_id=name,
        )
        for letter in words
    ]
    return [*deltas, AssistantFrame(message=ClaudeMessage(id=name, content=[TextBlock(words)]))]


def tool(id_: str, name: str, tool_input: Json = None) -> ClaudeFrame:
    return AssistantFrame(
        message=ClaudeMessage(id=f"msg{next(NUMBERS)}", content=[ToolUse(id_, name, tool_input)])
    )


def tool_result(id_: str, output: str, *, failed: bool = False) -> ClaudeFrame:
    return UserFrame(message=ClaudeMessage(content=[ToolResult(id_, output, is_error=failed)]))


def result(*uuids: str, **fields: object) -> ResultFrame:
    known: dict[str, object] = {"subtype": "success", "terminal_reason": "completed"}
    return ResultFrame(**{**known, **fields, "user_message_uuids": list(uuids)})  # type: ignore[arg-type]


async def heard_prompt(it: Talk, hello: Json = None) -> ClaudeUserMessage:
    """Answer requests until the prompt comes, and return it."""
    while True:
        match await it.heard():
            case ControlRequest(id=id_):
                reply = ControlReplyBody(
                    subtype="success", request_id=id_, response=HELLO if hello is None else hello
                )
                it.says(ControlReplyFrame(response=reply))
            case ClaudeUserMessage() as say:
                return say
            case heard:
                raise AssertionError(f"before its prompt came {heard!r}")


async def agent_of_frames(it: Talk) -> None:
    """Play one run, and the messages that follow."""
    prompt = await heard_prompt(it)
    while await took_turns(it, prompt):
        heard = await it.heard()
        if heard == INTERRUPTED:
            it.says(idle())
            return
        assert isinstance(heard, ClaudeUserMessage), heard
        prompt = heard


async def took_turns(it: Talk, prompt: ClaudeUserMessage) -> bool:
    """Answer a prompt and the messages that come meanwhile; return False if the turn failed."""
    it.says(running(), MessageLifecycle(command_uuid=prompt.uuid, state="queued"))
    it.says(MessageLifecycle(command_uuid=prompt.uuid, state="started"), init(session_of(it)))
    turn = [prompt]
    while turn:
        for order in str(turn[0].content).split(";"):
            if not await obey(it, order.strip(), turn):
                return False
        it.says(result(turn[0].uuid, result="well", stop_reason="end_turn"))
        it.says(MessageLifecycle(command_uuid=turn.pop(0).uuid, state="completed"))
    it.says(idle())
    return True


async def obey(it: Talk, order: str, turn: list[ClaudeUserMessage]) -> bool:
    """Execute one order; False ends the script."""
    verb, _, rest = order.partition(" ")
    match verb:
        case "use":
            it.says(tool(f"t{next(NUMBERS)}", rest))
        case "fail":
            error = AssistantFrame(
                message=ClaudeMessage(id="e", content=[TextBlock(rest)]), error="unknown"
            )
            it.says(error, result(turn[0].uuid, is_error=True, result=rest), idle())
            return False
        case "wait":
            while (heard := await it.heard()) != INTERRUPTED:
                hear(it, heard, turn)
            stop(it, turn)
            return False
        case "deaf":
            await trio.sleep_forever()
        case "ask":
            return await ask(it, rest, turn)
        case _:
            it.says(*text(order.removeprefix("say ")))
    return True


def stop(it: Talk, turn: list[ClaudeUserMessage]) -> None:
    uuids = [each.uuid for each in turn]
    it.says(
        result(
            *uuids,
            subtype="error_during_execution",
            is_error=True,
            terminal_reason="aborted_streaming",
        ),
        idle(),
    )


async def ask(it: Talk, name: str, turn: list[ClaudeUserMessage]) -> bool:
    """Ask, and handle the messages that come meanwhile."""
    id_ = f"t{next(NUMBERS)}"
    it.says(tool(id_, name, {"n": 1}))
    assert isinstance(it.opening, ClaudeSpec)
    if it.opening.mode != "bypassPermissions":
        request = HostRequestBody(
            subtype="can_use_tool", tool_name=name, input={"n": 1}, tool_use_id=id_
        )
        it.says(HostRequest(request_id=f"q{id_}", request=request))
        while True:
            match await it.heard():
                case SentAnswer(decision=decision):
                    if not isinstance(decision, Allow):
                        it.says(tool_result(id_, "no", failed=True))
                        return True
                    break
                case heard if heard == INTERRUPTED:
                    it.says(tool_result(id_, "stopped", failed=True))
                    stop(it, turn)
                    return False
                case heard:
                    hear(it, heard, turn)
    it.says(tool_result(id_, "done"))
    return True


def hear(it: Talk, heard: object, turn: list[ClaudeUserMessage]) -> None:
    """Accept another message, which is answered in a turn of its own."""
    assert isinstance(heard, ClaudeUserMessage), heard
    turn.append(heard)
    it.says(MessageLifecycle(command_uuid=heard.uuid, state="queued"))
