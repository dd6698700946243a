"""A scripted Codex for a mock: it follows the orders in its prompt, in Codex's protocol."""

from __future__ import annotations

from itertools import count
from typing import Final

import msgspec
import trio

from sessionmgr.adapter import Allow
from sessionmgr.adapter.kit.json_rpc_caller import (
    PeerReply,
    PeerRequest,
    RpcAnswer,
    RpcCall,
    RpcOutgoing,
    RpcRefusal,
)
from sessionmgr.model import Json
from sessionmgr.testing.mock_sdk import INTERRUPTED, MockConversation, SentAnswer
from sessionmgr_adapters.codex.frames import (
    CodexFrame,
    CodexMessageDelta,
    CodexTurn,
    ItemEndedNotice,
    ItemStartedNotice,
    ServerInfo,
    ThreadSettings,
    ThreadSettingsNotice,
    TurnEndedNotice,
    TurnError,
    TurnStartedNotice,
)
from sessionmgr_adapters.codex.items import AgentMessageItem, CommandItem, UserMessageItem

Talk = MockConversation[RpcOutgoing, CodexFrame]
NUMBERS: Final = count(1)
THREAD: Final = "01a1f0d2-07b7-7361-aabc-0547fc038fae"
TURN: Final = "turn-1"
HELLO: Final = ServerInfo(user_agent="sessionmgr/0.169.0 (Debian 12.0.0; x86_64)")
TYPES: Final = {
    "read-only": "readOnly",
    "workspace-write": "workspaceWrite",
    "danger-full-access": "dangerFullAccess",
}
COMMAND: Final = "item/commandExecution/requestApproval"


def result(call: RpcCall, value: Json) -> RpcAnswer:
    return RpcAnswer(call.id, call.method, msgspec.json.encode(value))


def opened(call: RpcCall) -> RpcAnswer:
    """Return the answer to the opening of a thread, with the requested settings."""
    sandbox = TYPES[str(call.params["sandbox"])]
    thread = call.params.get("threadId")
    if thread is None or call.method == "thread/fork":
        thread = f"{THREAD[:-12]}{next(NUMBERS):012}"
    return result(
        call,
        {
            "thread": {"id": thread},
            "model": call.params.get("model") or "gpt-5.5",
            "cwd": call.params["cwd"],
            "approvalPolicy": call.params["approvalPolicy"],
            "sandbox": {"type": sandbox, "networkAccess": False},
        },
    )


def settled(call: RpcCall) -> ThreadSettingsNotice:
    """Return the notice that the requested settings are in force."""
    settings = ThreadSettings(
        approval_policy=call.params["approvalPolicy"],
        approvals_reviewer=str(call.params.get("approvalsReviewer", "user")),
        sandbox_policy=call.params["sandboxPolicy"],
    )
    return ThreadSettingsNotice(thread_id=str(call.params["threadId"]), thread_settings=settings)


async def greeted(it: Talk, config: Json = None) -> RpcCall:
    """Answer the calls before a thread is opened, and return the call that opens it."""
    it.says(HELLO)
    call = await it.heard()
    assert isinstance(call, RpcCall)
    if call.method == "config/read":  # otherwise it is known from an earlier run
        assert call.params["cwd"]
        it.says(result(call, {"config": config or {}}))
        call = await it.heard()
        assert isinstance(call, RpcCall)
    return call


async def opening(it: Talk, config: Json = None) -> RpcCall:
    """Answer the calls before a turn, and return the call that starts it."""
    it.says(opened(await greeted(it, config)))
    while True:
        call = await it.heard()
        assert isinstance(call, RpcCall), call
        match call.method:
            case "thread/settings/update":
                it.says(result(call, {}), settled(call))
            case "thread/inject_items":
                it.says(result(call, {}))
            case "turn/start":
                return call
            case _:
                raise AssertionError(f"before the turn came {call!r}")


def thread_of(call: RpcCall) -> str:
    return str(call.params["threadId"])


def begin(it: Talk, call: RpcCall, turn: str = TURN) -> None:
    it.says(
        result(call, {"turn": {"id": turn}}),
        TurnStartedNotice(thread_id=thread_of(call), turn=CodexTurn(id=turn, status="inProgress")),
    )


def end(
    it: Talk,
    thread: str = THREAD,
    status: str = "completed",
    error: TurnError | None = None,
    turn: str = TURN,
) -> None:
    it.says(TurnEndedNotice(thread_id=thread, turn=CodexTurn(id=turn, status=status, error=error)))


def text(thread: str, words: str, name: str | None = None) -> list[CodexFrame]:
    """Return a message, streamed and whole."""
    name = name or f"msg{next(NUMBERS)}"
    deltas: list[CodexFrame] = [
        CodexMessageDelta(thread_id=thread, item_id=name, delta=each) for each in words
    ]
    return [
        ItemStartedNotice(thread_id=thread, item=AgentMessageItem(id=name)),
        *deltas,
        ItemEndedNotice(thread_id=thread, item=AgentMessageItem(id=name, text=words)),
    ]


def command(id_: str, line: str, status: str = "inProgress", output: str = "") -> CommandItem:
    return CommandItem(
        id=id_,
        command=f"/bin/bash -lc '{line}'",
        cwd="/work",
        status=status,
        aggregated_output=output or None,
        exit_code=0 if status == "completed" else None,
    )


async def agent_of_frames(it: Talk) -> None:
    """Play one run."""
    call = await opening(it)
    content = call.params["input"]
    assert isinstance(content, list)
    assert isinstance(content[0], dict)
    thread = thread_of(call)
    begin(it, call)
    for order in str(content[0]["text"]).split(";"):
        if not await obey(it, order.strip(), thread):
            return
    end(it, thread)
    while True:  # the agent is idle, and later messages are refused
        late = await it.heard()
        if isinstance(late, RpcCall):
            it.says(refusal(late, "no active turn to steer"))


async def obey(it: Talk, order: str, thread: str) -> bool:
    """Follow one order; return False after the last."""
    verb, _, rest = order.partition(" ")
    match verb:
        case "use":
            id_ = f"call{next(NUMBERS)}"
            it.says(ItemStartedNotice(thread_id=thread, item=command(id_, rest)))
            it.says(ItemEndedNotice(thread_id=thread, item=command(id_, rest, "completed", "done")))
        case "fail":
            end(it, thread, "failed", TurnError(message=rest, codex_error_info="other"))
            return False
        case "wait":
            while (heard := await it.heard()) != INTERRUPTED:
                hear(it, heard, thread)
            end(it, thread, "interrupted")
            return False
        case "deaf":
            await trio.sleep_forever()
        case "ask":
            return await ask(it, rest, thread)
        case _:
            it.says(*text(thread, order.removeprefix("say ")))
    return True


async def ask(it: Talk, name: str, thread: str) -> bool:
    """Send a request, and read other messages meanwhile."""
    number = next(NUMBERS)
    id_ = f"call{number}"
    it.says(ItemStartedNotice(thread_id=thread, item=command(id_, name)))
    params: dict[str, Json] = {"threadId": thread, "itemId": id_, "command": name, "cwd": "/work"}
    it.says(PeerRequest(number, COMMAND, params))
    while True:
        match await it.heard():
            case SentAnswer(decision=decision):
                allowed = isinstance(decision, Allow)
                status = "completed" if allowed else "declined"
                it.says(ItemEndedNotice(thread_id=thread, item=command(id_, name, status)))
                return True
            case heard if heard == INTERRUPTED:
                end(it, thread, "interrupted")
                return False
            case heard:
                hear(it, heard, thread)


def hear(it: Talk, heard: object, thread: str) -> None:
    """Accept a further message into the turn."""
    match heard:
        case RpcCall(method="turn/steer") as call:
            it.says(result(call, {"turnId": TURN}))
            name = str(call.params["clientUserMessageId"])
            it.says(
                ItemStartedNotice(thread_id=thread, item=UserMessageItem(id="u", client_id=name))
            )
        case RpcCall(method="thread/backgroundTerminals/clean") as call:
            it.says(result(call, {}))
        case PeerReply():
            pass
        case _:
            raise AssertionError(f"it heard {heard!r}")


def refusal(call: RpcCall, message: str, code: int = -32600) -> RpcAnswer:
    return RpcAnswer(call.id, call.method, refusal=RpcRefusal(code, message))
