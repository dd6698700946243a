"""Cancels at the worst moments: the moments, and the required outcome."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

import trio

from sessionmgr.adapter import ApprovalRequest, Decision
from sessionmgr.manager import RunHandle, SessionHandle
from sessionmgr.model import Json
from sessionmgr.testing.model_server import (
    ModelCall,
    ModelHang,
    ModelRefuse,
    ModelReply,
    ModelRequest,
    ModelSay,
    ModelScript,
)
from tests.real.harness import CLOSE, RealAgentHarness, until, until_event, with_word

LIMIT: Final = CLOSE + 20
"""Seconds for an end that may have to be forced, on a busy machine."""
Case: TypeAlias = Callable[[RealAgentHarness, str], Awaitable[tuple[SessionHandle, RunHandle]]]
"""Brings a new session to the moment of the cancel; the environment of its tools has the word."""


async def a_text_streams(house: RealAgentHarness, word: str) -> tuple[SessionHandle, RunHandle]:
    session = await house.session()
    run = await house.submit(
        session, [[ModelSay(text=word * 100, deltas=100, pause=0.1), ModelHang()]]
    )
    await until_event(run, "message_streamed")
    return session, run


async def a_stream_hangs(house: RealAgentHarness, word: str) -> tuple[SessionHandle, RunHandle]:
    session = await house.session()
    run = await house.submit(session, [[ModelSay(text=word, deltas=2), ModelHang()]])
    await until_event(run, "message_streamed")
    return session, run


async def a_tool_runs(house: RealAgentHarness, word: str) -> tuple[SessionHandle, RunHandle]:
    return await in_a_tool(house, word, f"tail -f /dev/null; : {word}")


async def a_tool_ignores_signals(
    house: RealAgentHarness, word: str
) -> tuple[SessionHandle, RunHandle]:
    deaf = f"trap '' TERM INT HUP; while :; do sleep 0.1; done; : {word}"
    return await in_a_tool(house, word, f"(setsid bash -c {deaf!r} &); {deaf}")


async def in_a_tool(
    house: RealAgentHarness, word: str, command: str, **options: Json
) -> tuple[SessionHandle, RunHandle]:
    """Start a session whose tool runs this command, which carries the word."""
    session = await house.session("dangerously_skip_permissions")
    # Codex waits at most ten seconds for a command, and then calls its model again.
    script: ModelScript = [[ModelCall(tool="shell", input={"command": command})], [ModelHang()]]
    run = await house.submit(session, script, options=house.options(**options))
    await until_event(run, "tool_call_started")
    await until(lambda: bool(with_word(word)))
    return session, run


async def in_a_question(
    house: RealAgentHarness, call: ModelCall
) -> tuple[SessionHandle, RunHandle]:
    """Start a session that waits for an approval without an answer."""
    asked = trio.Event()

    async def approve(_: ApprovalRequest) -> Decision:
        asked.set()
        await trio.sleep_forever()

    session = await house.session(approve=approve)
    run = await house.submit(session, [[call]])
    await asked.wait()
    return session, run


async def it_waits_to_try_again(
    house: RealAgentHarness, word: str
) -> tuple[SessionHandle, RunHandle]:
    session = await house.session()
    run = await house.submit(session, [[ModelRefuse(status=429, retry_after=40.0, message=word)]])
    await until_event(run, "retry_scheduled")
    return session, run


async def the_server_hangs(house: RealAgentHarness, word: str) -> tuple[SessionHandle, RunHandle]:
    session = await house.session()
    run = await house.submit(session, [[ModelHang(), ModelSay(text=word)]])
    await until(lambda: house.turns_asked(word) > 0)
    return session, run


async def nobody_reads(house: RealAgentHarness, word: str) -> tuple[SessionHandle, RunHandle]:
    """Stop reading after the first of many events."""
    session = await house.session()
    run = await house.submit(session, [[ModelSay(text="na " * 3000, deltas=3000), ModelHang()]])
    await until_event(run, "message_streamed")
    return session, run


def compactions_hang(request: ModelRequest) -> ModelReply | None:
    """Make the server hang at compactions."""
    return [ModelHang()] if request.purpose == "compaction" else None


async def cancelled_in_time(house: RealAgentHarness, case: Case) -> None:
    """Cancel a run; check that it ends in time, leaves no process, and can be resumed."""
    word = house.word()
    session, run = await case(house, word)
    before = trio.current_time()
    assert run.cancel("enough")
    result = await run.result()
    took = trio.current_time() - before
    told = f"{case.__name__}: {result.status} after {took:.2f} s: {result.failure}"
    assert (result.status, result.reason, result.detail) == ("cancelled", "user", "enough"), told
    assert took < LIMIT, told
    await until(lambda: not with_word(word), LIMIT)
    await house.goes_on(session)


async def cancel_all(house: RealAgentHarness, cases: Sequence[Case]) -> None:
    """Cancel runs in all of these cases concurrently."""
    async with trio.open_nursery() as nursery:
        for case in cases:
            nursery.start_soon(cancelled_in_time, house, case)
