"""Cancels and kills at the worst moments: the run ends at once, with all its processes."""

from __future__ import annotations

import os
import signal
from typing import Final

import pytest

from sessionmgr.manager import RunHandle, SessionHandle
from sessionmgr.model import FailureKind, ProcessExited
from tests.real.cancel_cases import (
    LIMIT,
    Case,
    a_stream_hangs,
    a_text_streams,
    a_tool_ignores_signals,
    a_tool_runs,
    cancel_all,
    nobody_reads,
    the_server_hangs,
)
from tests.real.harness import RealAgentHarness, line_of, until, with_word

ALL: Final[tuple[Case, ...]] = (
    *(a_text_streams, a_stream_hangs, a_tool_runs, a_tool_ignores_signals, the_server_hangs),
    nobody_reads,
)


async def test_a_cancel_is_over_soon(house: RealAgentHarness) -> None:
    await cancel_all(house, ALL)


async def in_a_deaf_tool(house: RealAgentHarness) -> tuple[str, SessionHandle, RunHandle]:
    word = house.word()
    session, run = await a_tool_ignores_signals(house, word)
    return word, session, run


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
async def test_a_process_that_is_ended_leaves_no_command_behind(
    house: RealAgentHarness, number: signal.Signals
) -> None:
    """At SIGTERM and SIGINT Gemini exits with 0 and leaves its commands running."""
    word, session, run = await in_a_deaf_tool(house)
    [program] = [each for each in with_word(house.mark) if b"gemini.js" in line_of(each)]
    os.kill(program, number)
    result = await run.result()
    assert result.failure is not None
    assert result.failure.kind in {FailureKind.PROCESS_EXITED, FailureKind.KILLED_BY_OS}
    assert (result.failure.retryable, result.failure.resumable) == (True, True)
    [exited] = [each async for each in run if isinstance(each, ProcessExited)]
    assert exited.emptied
    await until(lambda: not with_word(word), LIMIT)
    await house.goes_on(session)
