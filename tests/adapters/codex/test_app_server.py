"""What is said on the pipes of an app-server: a player stands in its place."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from sessionmgr.manager import Manager, open_manager
from sessionmgr.model import FailureKind, Json, MessageReceived, OutputReceived
from sessionmgr.store import MemoryStore
from sessionmgr.testing.player import Expect, Step, UntilClosed, Write, command_of
from sessionmgr_adapters.codex import CodexAdapter
from tests.adapters.codex.dialect import OPENED, SETTLED, THREAD

CHILD = "00000000-0000-4000-8000-000000000002"


def says(message: object) -> Write:
    return Write(json.dumps(message).encode() + b"\n")


def answers(number: int, result: object) -> Write:
    return says({"id": number, "result": result})


def tells(method: str, thread: str = THREAD, /, **params: object) -> Write:
    return says({"method": method, "params": {"threadId": thread, **params}})


def hears(method: str, **params: Json) -> Expect:
    return Expect({"method": method, "params": params} if params else {"method": method})


GREETING: list[Step] = [
    hears("initialize"),
    tells("configWarning", "", summary="it is cold"),
    answers(1, {"userAgent": "sessionmgr/0.169.0 (x)"}),
    hears("initialized"),
    hears("account/read"),
    answers(2, {"account": {"type": "apiKey"}}),
]
ENDED = tells("turn/completed", turn={"id": "t", "status": "completed"})


def message(text: str, thread: str = THREAD) -> Write:
    item = {"type": "agentMessage", "id": text, "text": text}
    return tells("item/completed", thread, turnId="t", item=item)


@asynccontextmanager
async def playing(
    tmp_path: Path, steps: list[Step]
) -> AsyncGenerator[tuple[Manager, dict[str, Json]], None]:
    argv = command_of([*steps, UntilClosed()], tmp_path / "playbook.json")
    options: dict[str, Json] = {"command": list(argv)}
    async with open_manager(
        store=MemoryStore(), adapters={"codex": CodexAdapter}, environ={"PATH": "/usr/bin:/bin"}
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
        Expect({"id": 0, "error": {"code": -32601}}),
        says({"id": "0", "method": asked, "params": {"threadId": THREAD, **about}}),
        Expect({"id": "0", "result": {"decision": "decline"}}),
        Write(b"this is no frame\n"),
        message("of nobody", "another"),
        tells("thread/started", CHILD, thread={"id": CHILD, "parentThreadId": THREAD}),
        message("of a child", CHILD),
        message("well"),
        ENDED,
        # The next run wants the same of the thread, which is loaded still.
        hears("config/read"),
        answers(7, {"config": {}}),
        hears("thread/loaded/list"),
        answers(8, {"data": [THREAD]}),
        hears("turn/start", threadId=THREAD),
        answers(9, {"turn": {"id": "t"}}),
        message("again"),
        ENDED,
        # The one after that does not.
        hears("config/read"),
        answers(10, {"config": {}}),
        hears("thread/unsubscribe"),
        answers(11, {"status": "unsubscribed"}),
        tells("thread/closed"),
        hears("thread/resume", threadId=THREAD, model="another"),
        says({"id": 12, "error": {"code": -32600, "message": "no rollout found for thread id"}}),
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
