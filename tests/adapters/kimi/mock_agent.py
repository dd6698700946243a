"""A scripted Kimi for a mock: it follows the orders in its prompt, in the protocol of the wire."""

from __future__ import annotations

import json
from itertools import count
from typing import Final

import msgspec
import trio

from sessionmgr.adapter import Allow
from sessionmgr.adapter.kit import PeerRequest, RpcAnswer, RpcCall, RpcOutgoing, RpcRefusal
from sessionmgr.model import Json
from sessionmgr.testing.mock_sdk import INTERRUPTED, MockConversation, SentAnswer
from sessionmgr_adapters.kimi.frames import KimiEvent, KimiFrame

Talk = MockConversation[RpcOutgoing, KimiFrame]
NUMBERS: Final = count(1)
SERVER: Final[Json] = {"protocol_version": "1.10", "server": {"name": "Kimi", "version": "1.50.0"}}


def text(words: str) -> KimiEvent:
    """Return a piece of text."""
    return KimiEvent("ContentPart", {"type": "text", "text": words})


def call(id_: str, name: str, arguments: str) -> tuple[KimiEvent, KimiEvent]:
    """Return a tool call, and its arguments."""
    function: Json = {"name": name, "arguments": ""}
    return (
        KimiEvent("ToolCall", {"type": "function", "id": id_, "function": function}),
        KimiEvent("ToolCallPart", {"arguments_part": arguments}),
    )


def result(id_: str, output: Json = "", *, failed: bool = False, message: str = "") -> KimiEvent:
    """Return the end of a tool call."""
    value: Json = {"is_error": failed, "output": output, "message": message, "display": []}
    return KimiEvent("ToolResult", {"tool_call_id": id_, "return_value": value})


def shell_request(id_: str, call_id: str, command: str) -> PeerRequest:
    """Return a request to run a command."""
    payload: dict[str, Json] = {
        "id": id_,
        "tool_call_id": call_id,
        "sender": "Shell",
        "action": "run command",
        "description": f"Run command `{command}`",
        "display": [{"type": "shell", "language": "bash", "command": command}],
    }
    return PeerRequest(id_, "ApprovalRequest", payload)


def edit_request(id_: str, call_id: str, path: str, tool: str = "WriteFile") -> PeerRequest:
    """Return a request to write a file."""
    display: Json = [{"type": "diff", "path": path, "old_text": "", "new_text": "x"}]
    payload: dict[str, Json] = {
        "id": id_,
        "tool_call_id": call_id,
        "sender": tool,
        "action": "edit file",
        "display": display,
    }
    return PeerRequest(id_, "ApprovalRequest", payload)


def answered(call: RpcCall, value: Json) -> RpcAnswer:
    """Return the answer to a call."""
    return RpcAnswer(call.id, call.method, msgspec.json.encode(value))


def failed(call: RpcCall, code: int, message: str) -> RpcAnswer:
    """Return an error as the answer to a call."""
    return RpcAnswer(call.id, call.method, refusal=RpcRefusal(code, message))


async def opening(it: Talk) -> RpcCall:
    """Answer the calls before the turn, and return the prompt, whose turn has begun."""
    while True:
        heard = await it.heard()
        assert isinstance(heard, RpcCall), heard
        match heard.method:
            case "initialize":
                it.says(answered(heard, SERVER))
            case "set_plan_mode":
                enabled = heard.params["enabled"]
                it.says(answered(heard, {"status": "ok", "plan_mode": enabled}))
            case "prompt":
                it.says(KimiEvent("TurnBegin", {"user_input": heard.params["user_input"]}))
                it.says(KimiEvent("StepBegin", {"n": 1}))
                return heard
            case _:
                raise AssertionError(f"before the turn came {heard!r}")


def end(it: Talk, prompt: RpcCall, status: str = "finished") -> None:
    """End the turn."""
    it.says(KimiEvent("TurnEnd"), answered(prompt, {"status": status}))


async def agent_of_frames(it: Talk) -> None:
    """Play one run."""
    prompt = await opening(it)
    for order in str(prompt.params["user_input"]).split(";"):
        if not await obey(it, order.strip(), prompt):
            return
    end(it, prompt)
    while True:  # the agent is idle, and later messages are refused
        match await it.heard():
            case RpcCall(method="steer") as late:
                it.says(failed(late, -32000, "No agent turn is in progress"))
            case _:
                pass


async def obey(it: Talk, order: str, prompt: RpcCall) -> bool:
    """Follow one order; return False after the last."""
    verb, _, rest = order.partition(" ")
    match verb:
        case "use":
            id_ = f"call{next(NUMBERS)}"
            it.says(*call(id_, "ReadFile", json.dumps({"path": rest})), result(id_, "done"))
        case "fail":
            it.says(KimiEvent("StepInterrupted"), KimiEvent("TurnEnd"))
            it.says(failed(prompt, -32003, f"Error code: 500 - {rest}"))
            return False
        case "wait":
            while (heard := await it.heard()) != INTERRUPTED:
                hear(it, heard)
            end(it, prompt, "cancelled")
            return False
        case "deaf":
            await trio.sleep_forever()
        case "ask":
            return await ask(it, rest, prompt)
        case _:
            for word in order.removeprefix("say ").split(" "):
                it.says(text(word if word == order.split(" ")[-1] else f"{word} "))
            it.says(KimiEvent("StepBegin", {"n": 2}))
    return True


async def ask(it: Talk, command: str, prompt: RpcCall) -> bool:
    """Send a request, and read other messages meanwhile."""
    id_ = f"call{next(NUMBERS)}"
    it.says(*call(id_, "Shell", json.dumps({"command": command})))
    it.says(shell_request(f"ask-{id_}", id_, command))
    while True:
        match await it.heard():
            case SentAnswer(decision=decision):
                it.says(result(id_, failed=not isinstance(decision, Allow)))
                return True
            case heard if heard == INTERRUPTED:
                end(it, prompt, "cancelled")
                return False
            case heard:
                hear(it, heard)


def hear(it: Talk, heard: object) -> None:
    """Accept a further message into the turn."""
    match heard:
        case RpcCall(method="steer") as steer:
            it.says(answered(steer, {"status": "steered"}))
            it.says(KimiEvent("SteerInput", {"user_input": steer.params["user_input"]}))
        case _:
            raise AssertionError(f"it heard {heard!r}")
