"""The traffic on an app-server's pipes, with a player in place of the app-server."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sessionmgr.manager import Clocks, Manager, open_manager
from sessionmgr.model import FailureKind, Json, MessageReceived, OutputReceived
from sessionmgr.store import MemoryStore
from sessionmgr.testing.player import ExpectStep, Step, UntilClosedStep, WriteStep, command_of
from sessionmgr_adapters.codex import CodexAdapter
from tests.adapters.codex.dialect import OPENED, SETTLED, THREAD

CHILD = "00000000-0000-4000-8000-000000000002"
OTHER = "00000000-0000-4000-8000-000000000004"
GRANDCHILD = "00000000-0000-4000-8000-000000000003"


def says(message: object) -> WriteStep:
    return WriteStep(json.dumps(message).encode() + b"\n")


def answers(number: int, result: object) -> WriteStep:
    return says({"id": number, "result": result})


def tells(method: str, thread: str = THREAD, /, **params: object) -> WriteStep:
    return says({"method": method, "params": {"threadId": thread, **params}})


def hears(method: str, **params: Json) -> ExpectStep:
    return ExpectStep({"method": method, "params": params} if params else {"method": method})


GREETING: list[Step] = [
    hears("initialize"),
    tells("configWarning", "", summary="it is cold"),
    answers(1, {"userAgent": "sessionmgr/0.169.0 (x)"}),
    hears("initialized"),
    hears("account/read"),
    answers(2, {"account": {"type": "apiKey"}}),
]
ENDED = tells("turn/completed", turn={"id": "t", "status": "completed"})


def message(text: str, thread: str = THREAD) -> WriteStep:
    item = {"type": "agentMessage", "id": text, "text": text}
    return tells("item/completed", thread, turnId="t", item=item)


@asynccontextmanager
async def playing(
    tmp_path: Path, steps: list[Step], **clocks: float
) -> AsyncGenerator[tuple[Manager, dict[str, Json]], None]:
    argv = command_of([*steps, UntilClosedStep()], tmp_path / "playbook.json")
    options: dict[str, Json] = {"command": list(argv)}
    async with open_manager(
        store=MemoryStore(),
        adapters={"codex": CodexAdapter},
        environ={"PATH": "/usr/bin:/bin"},
        clocks=Clocks(**clocks),
    ) as manager:
        yield manager, options


async def test_each_thread_hears_what_is_its_own_and_whatever_is_asked_is_answered(
    tmp_path: Path,
) -> None:
    asked = "item/commandExecution/requestApproval"
    about = {"itemId": "c", "command": "ls"}
    steps: list[Step] = [
        *GREETING,
        hears("config/read", cwd=str(tmp_path)),
        answers(3, {"config": {}}),
        hears("thread/start"),
        tells("thread/goal/cleared"),
        answers(4, OPENED),
        hears("thread/settings/update"),
        answers(5, {}),
        tells("thread/settings/updated", threadSettings=SETTLED),
        hears("turn/start"),
        answers(6, {"turn": {"id": "t"}}),
        says({"id": 0, "method": asked, "params": {"threadId": "nobody's", **about}}),
        ExpectStep({"id": 0, "error": {"code": -32601}}),
        says({"id": "0", "method": asked, "params": {"threadId": THREAD, **about}}),
        ExpectStep({"id": "0", "result": {"decision": "decline"}}),
        WriteStep(b"this is no frame\n"),
        message("of nobody", "another"),
        tells("thread/started", CHILD, thread={"id": CHILD, "parentThreadId": THREAD}),
        message("of a child", CHILD),
        message("well"),
        ENDED,
        hears("thread/unsubscribe", threadId=CHILD),
        answers(7, {"status": "unsubscribed"}),
        tells("thread/closed", CHILD),
        # The next run wants the same terms of the thread, which is still loaded.
        hears("turn/start", threadId=THREAD),
        answers(8, {"turn": {"id": "t"}}),
        message("again"),
        ENDED,
        # The run after that does not.
        hears("thread/unsubscribe"),
        answers(9, {"status": "unsubscribed"}),
        tells("thread/closed"),
        hears("thread/resume", threadId=THREAD, model="another"),
        says({"id": 10, "error": {"code": -32600, "message": "no rollout found for thread id"}}),
    ]
    async with playing(tmp_path, steps) as (manager, options):
        session = await manager.open_session("codex", cwd=tmp_path)
        run = await session.submit("one", options=options)
        events = [event async for event in run]
        first = await run.result()
        assert (first.status, first.text) == ("completed", "well"), first
        assert len(first.permission_denials) == 1
        assert [each.text for each in events if isinstance(each, OutputReceived)] == [
            "this is no frame"
        ]
        messages = [each for each in events if isinstance(each, MessageReceived)]
        assert [each.content for each in messages] == ["of a child", "well"]
        assert messages[0].parent_tool_call_id == CHILD
        second = await (await session.submit("two", options=options)).result()
        assert (second.status, second.text) == ("completed", "again"), second
        third = await (await session.submit("three", model="another", options=options)).result()
        assert third.failure is not None
        assert third.failure.kind == FailureKind.SESSION_NOT_FOUND


def agent(kind: str, thread: str, caller: str = THREAD) -> WriteStep:
    item = {"type": "subAgentActivity", "id": f"of {thread}", "kind": kind, "agentPath": "/root/a"}
    return tells("item/completed", caller, turnId="t", item={**item, "agentThreadId": thread})


def turn_of(thread: str, name: str, status: str = "inProgress") -> WriteStep:
    method = "turn/started" if status == "inProgress" else "turn/completed"
    return tells(method, thread, turn={"id": name, "status": status})


OPENED_AND_ASKED: list[Step] = [
    *GREETING,
    hears("config/read"),
    answers(3, {"config": {}}),
    hears("thread/start"),
    answers(4, OPENED),
    hears("thread/settings/update"),
    answers(5, {}),
    tells("thread/settings/updated", threadSettings=SETTLED),
    hears("turn/start"),
    answers(6, {"turn": {"id": "t"}}),
    turn_of(THREAD, "t"),
]


async def test_an_agent_that_is_told_of_late_is_its_callers_with_all_that_it_has_said(
    tmp_path: Path,
) -> None:
    asked = "item/commandExecution/requestApproval"
    about = {"itemId": "c", "command": "ls"}
    steps: list[Step] = [
        *OPENED_AND_ASKED,
        turn_of(CHILD, "u"),
        message("early", CHILD),
        agent("started", CHILD),
        says({"id": 0, "method": asked, "params": {"threadId": CHILD, **about}}),
        ExpectStep({"id": 0, "result": {"decision": "decline"}}),
        agent("started", GRANDCHILD, CHILD),
        message("deeper", GRANDCHILD),
        turn_of(CHILD, "u", "completed"),
        message("well"),
        ENDED,
        turn_of(GRANDCHILD, "v"),
        turn_of(GRANDCHILD, "v", "completed"),
        hears("thread/unsubscribe", threadId=CHILD),
        answers(7, {"status": "unsubscribed"}),
        tells("thread/closed", CHILD),
        hears("thread/unsubscribe", threadId=GRANDCHILD),
        answers(8, {"status": "unsubscribed"}),
        tells("thread/closed", GRANDCHILD),
    ]
    async with playing(tmp_path, steps) as (manager, options):
        session = await manager.open_session("codex", cwd=tmp_path)
        run = await session.submit("one", options=options)
        events = [event async for event in run]
        result = await run.result()
    assert (result.status, result.text) == ("completed", "well"), result
    assert len(result.permission_denials) == 1
    messages = [each for each in events if isinstance(each, MessageReceived)]
    assert [(each.content, each.parent_tool_call_id or None) for each in messages] == [
        ("early", f"of {CHILD}"),
        ("deeper", f"of {GRANDCHILD}"),
        ("well", None),
    ]


@pytest.mark.parametrize("is_late", [False, True], ids=["told of", "told of late"])
async def test_agents_of_a_run_that_cannot_be_brought_to_its_end_are_ended_all_the_same(
    tmp_path: Path, is_late: bool
) -> None:
    """The proof is that the other run on the same app-server continues."""
    interrupt, clean = "turn/interrupt", "thread/backgroundTerminals/clean"
    early: list[Step] = [
        agent("started", GRANDCHILD, CHILD),
        hears(clean, threadId=GRANDCHILD),
        turn_of(GRANDCHILD, "v"),
        hears(interrupt, threadId=GRANDCHILD, turnId="v"),
        *(answers(number, {}) for number in (10, 11, 12, 14)),
    ]
    late: list[Step] = [
        turn_of(GRANDCHILD, "v"),
        agent("started", GRANDCHILD, CHILD),
        # Agents are interrupted and cleaned up in any order.
        *(ExpectStep({"params": {"threadId": GRANDCHILD}}) for _ in range(2)),
        *(answers(number, {}) for number in (10, 11, 12, 13, 14)),
    ]
    steps: list[Step] = [
        *GREETING,
        hears("config/read"),
        answers(3, {"config": {}}),
        hears("thread/start"),
        answers(4, {**OPENED, "thread": {"id": OTHER}}),
        hears("thread/settings/update"),
        answers(5, {}),
        tells("thread/settings/updated", OTHER, threadSettings=SETTLED),
        hears("turn/start"),
        answers(6, {"turn": {"id": "t"}}),
        hears("thread/start"),
        answers(7, OPENED),
        hears("thread/settings/update"),
        answers(8, {}),
        tells("thread/settings/updated", threadSettings=SETTLED),
        hears("turn/start"),
        answers(9, {"turn": {"id": "t"}}),
        turn_of(THREAD, "t"),
        agent("started", CHILD),
        turn_of(CHILD, "u"),
        message("both are at work"),
        hears(interrupt, threadId=THREAD, turnId="t"),
        # The app-server does not confirm the interrupt. After the grace both runs have ended.
        hears(interrupt),
        hears(interrupt),
        *(late if is_late else early),
        hears(clean),
        hears(clean),
        *(answers(number, {}) for number in ((15, 16) if is_late else (13, 15, 16))),
        *(hears("thread/unsubscribe") for _ in range(3)),
        *(answers(number, {"status": "unsubscribed"}) for number in (17, 18, 19)),
        *(tells("thread/closed", each) for each in (THREAD, CHILD, GRANDCHILD)),
        message("on", OTHER),
        tells("turn/completed", OTHER, turn={"id": "t", "status": "completed"}),
    ]
    async with playing(tmp_path, steps, close=0.3) as (manager, options):
        goes_on = await manager.open_session("codex", cwd=tmp_path)
        other = await goes_on.submit("two", options=options)
        async for event in other:
            if event.type == "run_started":
                break
        session = await manager.open_session("codex", cwd=tmp_path)
        run = await session.submit("one", options=options)
        async for event in run:
            if event.type == "message_received":
                run.cancel()
        assert (await run.result()).status == "cancelled"
        result = await other.result()
        assert (result.status, result.text) == ("completed", "on"), result
