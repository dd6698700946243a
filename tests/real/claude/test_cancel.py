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
    open_model_server,
)
from sessionmgr.testing.model_server.hermetic import Hermitage
from tests.real.claude.house import CLOSE, House, open_house, until, until_event, with_word

LIMIT: Final = CLOSE + 1
Case: TypeAlias = Callable[[House, str], Awaitable[tuple[SessionHandle, RunHandle]]]
"""Brings a new session to where it is cancelled; what its tools run carries the word."""


async def a_text_streams(house: House, word: str) -> tuple[SessionHandle, RunHandle]:
    session = await house.session()
    run = await house.submit(session, [[Say(text=word * 100, deltas=100, pause=0.1)]])
    await until_event(run, "message_streamed")
    return session, run


async def a_stream_hangs(house: House, word: str) -> tuple[SessionHandle, RunHandle]:
    session = await house.session()
    run = await house.submit(session, [[Say(text=word, deltas=2), Hang()]])
    await until_event(run, "message_streamed")
    return session, run


async def a_tool_runs(house: House, word: str) -> tuple[SessionHandle, RunHandle]:
    return await in_a_tool(house, word, f"tail -f /dev/null; : {word}")


async def a_tool_ignores_signals(house: House, word: str) -> tuple[SessionHandle, RunHandle]:
    deaf = f"trap '' TERM INT HUP; while :; do sleep 0.1; done; : {word}"
    return await in_a_tool(house, word, f"(setsid bash -c {deaf!r} &); {deaf}")


async def in_a_tool(house: House, word: str, command: str) -> tuple[SessionHandle, RunHandle]:
    session = await house.session("full_auto")
    run = await house.submit(session, [[Call(tool="shell", input={"command": command})]])
    await until_event(run, "tool_call_started")
    await until(lambda: bool(with_word(word)))
    return session, run


async def something_runs_in_the_background(
    house: House, word: str
) -> tuple[SessionHandle, RunHandle]:
    session = await house.session("full_auto")
    command = f"tail -f /dev/null; : {word}"
    call: dict[str, Json] = {"command": command, "run_in_background": True, "description": "d"}
    run = await house.submit(session, [[Call(tool="Bash", input=call)], [Say(text="soon")]])
    await until_event(run, "turn_completed")
    await until(lambda: bool(with_word(word)))
    return session, run


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
    command = {"command": f"touch {word}"}
    run = await house.submit(session, [[Call(tool="shell", input=command)]])
    await asked.wait()
    return session, run


async def the_context_is_shortened(house: House, word: str) -> tuple[SessionHandle, RunHandle]:
    session = await house.session()
    options = house.options(slash_commands=True)
    await house.play([[Say(text=word)]], session, options=options)
    run = await house.submit(session, "/compact", options=options)
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
    a_stream_hangs,
    a_tool_runs,
    a_tool_ignores_signals,
    something_runs_in_the_background,
    it_waits_to_try_again,
    a_question_is_open,
    the_context_is_shortened,
    the_server_hangs,
    nobody_reads,
)
ESSENTIAL: Final[tuple[Case, ...]] = (
    a_text_streams,
    a_tool_ignores_signals,
    something_runs_in_the_background,
)


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
        env = {**hermitage.claude(retries=10), "IS_SANDBOX": "1"}
        async with open_house(server, newest, hermitage.work, env) as house:
            for some in (ALL[::2], ALL[1::2]):  # all at once would be slow for want of cores
                async with trio.open_nursery() as nursery:
                    for case in some:
                        nursery.start_soon(cancelled_in_time, house, case)
    assert server.log.strangers == []


async def test_an_older_one_is_cancelled_as_well(old_house: House) -> None:
    async with trio.open_nursery() as nursery:
        for case in ESSENTIAL:
            nursery.start_soon(cancelled_in_time, old_house, case)


async def test_a_run_is_over_when_its_block_is_left(house: House) -> None:
    session, word = await house.session("full_auto"), house.word()
    script: Script = [[Call(tool="shell", input={"command": f"tail -f /dev/null; : {word}"})]]
    options = house.options(keep=False)
    run = await house.submit(session, script, options=options)
    await until(lambda: bool(with_word(word)))
    before = trio.current_time()
    await run.leave(early=False)
    assert run.status == "cancelled"
    await until(lambda: not with_word(word), LIMIT - (trio.current_time() - before))


async def test_work_in_the_background_keeps_a_run_open(any_house: House) -> None:
    command: dict[str, Json] = {"command": "sleep 1; touch late", "run_in_background": True}
    script: Script = [[Call(tool="Bash", input=command)], [Say(text="soon")], [Say(text="seen")]]
    played = await any_house.play(script, await any_house.session("full_auto"))
    assert played.result.status == "completed", played.result.failure
    assert Path(any_house.work, "late").exists()
    assert played.result.turns == 2
