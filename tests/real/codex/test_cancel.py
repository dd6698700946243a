"""A run is cancelled at the worst of times: it is over at once, and so is all that it did."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeAlias

import trio

from sessionmgr.manager import RunHandle, SessionHandle
from sessionmgr.model import Json
from sessionmgr.provider import ApprovalRequest, Decision
from sessionmgr.testing.model_server import (
    Call,
    Hang,
    ModelRequest,
    Refuse,
    Reply,
    Say,
    Script,
    Use,
    open_model_server,
)
from sessionmgr.testing.model_server.hermetic import Hermitage
from tests.real.codex.house import open_house
from tests.real.house import CLOSE, House, until, until_event, with_word

LIMIT: Final = CLOSE + 1
Case: TypeAlias = Callable[[House, str], Awaitable[tuple[SessionHandle, RunHandle]]]
"""Brings a new session to where it is cancelled; what its tools run carries the word."""


async def a_text_streams(house: House, word: str) -> tuple[SessionHandle, RunHandle]:
    session = await house.session()
    run = await house.submit(session, [[Say(text=word * 100, deltas=100, pause=0.1)]])
    await until_event(run, "message_streamed")
    return session, run


async def a_tool_runs(house: House, word: str) -> tuple[SessionHandle, RunHandle]:
    return await in_a_tool(house, word, f"tail -f /dev/null; : {word}")


async def a_tool_ignores_signals(house: House, word: str) -> tuple[SessionHandle, RunHandle]:
    deaf = f"trap '' TERM INT HUP; while :; do sleep 0.1; done; : {word}"
    return await in_a_tool(house, word, f"(setsid bash -c {deaf!r} &); {deaf}")


async def in_a_tool(
    house: House, word: str, command: str, **options: Json
) -> tuple[SessionHandle, RunHandle]:
    session = await house.session("dangerously_skip_permissions")
    script: Script = [[Call(tool="shell", input={"command": command})]]
    run = await house.submit(session, script, options=house.options(**options))
    await until_event(run, "tool_call_started")
    await until(lambda: bool(with_word(word)))
    return session, run


async def a_process_of_its_own_runs(house: House, word: str) -> tuple[SessionHandle, RunHandle]:
    return await in_a_tool(house, word, f"tail -f /dev/null; : {word}", exec=True)


async def it_waits_to_try_again(house: House, word: str) -> tuple[SessionHandle, RunHandle]:
    session = await house.session()
    run = await house.submit(session, [[Refuse(status=429, retry_after=40.0, message=word)]])
    await until_event(run, "retry_scheduled")
    return session, run


async def a_question_is_open(house: House, word: str) -> tuple[SessionHandle, RunHandle]:
    asked = trio.Event()

    async def approve(_: ApprovalRequest) -> Decision:
        asked.set()
        await trio.sleep_forever()

    session = await house.session(approve=approve)
    wish: dict[str, Json] = {"cmd": f": {word}", "sandbox_permissions": "require_escalated"}
    wish["justification"] = "May I?"
    run = await house.submit(session, [[Call(tool="exec_command", input=wish)]])
    await asked.wait()
    return session, run


async def the_context_is_shortened(house: House, word: str) -> tuple[SessionHandle, RunHandle]:
    session = await house.session("full_auto")
    options = house.options(config={"model_auto_compact_token_limit": 20_000})
    call = Call(tool="shell", input={"command": "true"})
    script: Script = [[call, Use(input=90_000)], [Say(text=word)]]
    run = await house.submit(session, script, options=options)
    await until_event(run, "compaction_started")
    return session, run


async def the_server_hangs(house: House, word: str) -> tuple[SessionHandle, RunHandle]:
    session = await house.session()
    run = await house.submit(session, [[Hang(), Say(text=word)]])
    await until(lambda: any(word in str(each.items) for each in house.server.log.asked))
    return session, run


async def nobody_reads(house: House, word: str) -> tuple[SessionHandle, RunHandle]:
    """Stop reading after the first of many events."""
    session = await house.session()
    run = await house.submit(session, [[Say(text="na " * 3000, deltas=3000), Hang()]])
    await until_event(run, "message_streamed")
    return session, run


ALL: Final[tuple[Case, ...]] = (
    a_text_streams,
    a_tool_runs,
    a_tool_ignores_signals,
    it_waits_to_try_again,
    a_question_is_open,
    the_context_is_shortened,
    the_server_hangs,
    nobody_reads,
    a_process_of_its_own_runs,
)
ESSENTIAL: Final[tuple[Case, ...]] = (a_text_streams, a_tool_ignores_signals, a_question_is_open)


def compactions_hang(request: ModelRequest) -> Reply | None:
    return [Hang()] if request.purpose == "compaction" else None


async def cancelled_in_time(house: House, case: Case) -> None:
    """Cancel a run there, and see that it is over in time, leaves nothing, and can go on."""
    word = house.word()
    session, run = await case(house, word)
    before = trio.current_time()
    assert run.cancel("enough")
    result = await run.result()
    took = trio.current_time() - before
    told = f"{case.__name__}: {result.status} after {took:.2f} s: {result.failure}"
    assert (result.status, result.reason, result.detail) == ("cancelled", "user", "enough"), told
    assert took < LIMIT, told
    await until(lambda: not with_word(word), LIMIT - took)
    await house.goes_on(session)


async def test_a_run_is_cancelled_whatever_it_does(newest: Path, tmp_path: Path) -> None:
    async with open_model_server(compactions_hang) as server:
        hermitage = Hermitage(tmp_path, server.url)
        env = hermitage.codex(retries=10)
        async with (
            open_house(server, newest, hermitage.work, env) as house,
            trio.open_nursery() as nursery,
        ):
            for case in ALL:
                nursery.start_soon(cancelled_in_time, house, case)
    assert server.log.strangers == []


async def test_an_older_one_is_cancelled_as_well(old_house: House) -> None:
    async with trio.open_nursery() as nursery:
        for case in ESSENTIAL:
            nursery.start_soon(cancelled_in_time, old_house, case)
