"""A real Claude Code is killed: that costs its run at most."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from sessionmgr.manager import RunHandle, SessionHandle
from sessionmgr.model import ErrorOccurred, FailureKind, RunStatus
from sessionmgr.testing.model_server import ModelCall, ModelSay, ModelScript, prompt_with
from sessionmgr_adapters.claude import ClaudeAdapter
from tests.real.claude.harness import (
    RealAgentHarness,
    is_kept,
    line_of,
    living,
    parent_of,
    programs_of,
    until,
)

SLEEP = "touch begun; sleep 1000; echo over"


@pytest.mark.parametrize("long", [False, True], ids=["here", "where the path is long"])
async def test_a_child_that_is_killed_in_a_tool_costs_its_run(
    any_house: RealAgentHarness, long: bool
) -> None:
    work = any_house.work
    if long:
        work = any_house.place("p" * 120) / ("q" * 120)
        work.mkdir()
    session = await any_house.session("full_auto", cwd=work)
    first = await any_house.play([[ModelSay(text="one")]], session)
    await until(lambda: _is_kept(any_house, "one"))
    script: ModelScript = [[ModelCall(tool="shell", input={"command": SLEEP})]]
    run = await session.submit(prompt_with(script), options=any_house.options())
    await until(lambda: any("sleep 1000" in each for each in living(work)))
    _send(any_house, signal.SIGKILL, work)
    result = await run.result()
    assert result.status is RunStatus.FAILED
    assert result.failure is not None
    assert result.failure.kind in {FailureKind.KILLED_BY_OS, FailureKind.PROCESS_EXITED}
    assert (result.failure.retryable, result.failure.resumable) == (True, True)
    await until(lambda: not any("sleep 1000" in each for each in living(work)))
    again = await any_house.play([[ModelSay(text="two")]], session)
    assert again.result.text == "two", again.result.failure
    assert again.result.provider_session_id == first.result.provider_session_id


async def test_a_child_that_is_killed_at_rest_costs_nothing(house: RealAgentHarness) -> None:
    assert await goes_on_after(house, lambda: _send(house, signal.SIGKILL)) == []


async def test_a_child_that_stands_still_is_replaced_by_one_of_the_runs_own(
    house: RealAgentHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def strike() -> None:
        monkeypatch.setattr(ClaudeAdapter, "patience", 2.0)
        _send(house, signal.SIGSTOP)

    assert await goes_on_after(house, strike) == ["fallback_hung"]


async def goes_on_after(house: RealAgentHarness, strike: Callable[[], None]) -> list[str | None]:
    """Kill an idle process, and check that its session continues; return the reported codes."""
    session = await house.session("full_auto")
    first = await house.play([[ModelSay(text="one")]], session)
    await until(lambda: _is_kept(house, "one"))
    strike()
    again = await house.play([[ModelSay(text="two")]], session)
    assert again.result.text == "two", again.result.failure
    assert again.result.provider_session_id == first.result.provider_session_id
    errors = [each for each in again.events if isinstance(each, ErrorOccurred)]
    return [each.failure.provider_code for each in errors]


async def test_who_guards_a_tree_is_killed_and_it_costs_the_run(house: RealAgentHarness) -> None:
    session, run = await in_a_tool(house)
    _, guard, _ = _chain(house)
    os.kill(guard, signal.SIGKILL)
    result = await run.result()
    assert result.failure is not None
    assert result.failure.kind is FailureKind.PROCESS_EXITED
    assert (result.failure.retryable, result.failure.resumable) == (True, True)
    await until(lambda: not list(living(house.work)))
    await house.goes_on(session)


async def test_who_starts_all_trees_is_killed_and_it_costs_nothing(house: RealAgentHarness) -> None:
    session, run = await in_a_tool(house)
    warden, _, _ = _chain(house)
    os.kill(warden, signal.SIGKILL)
    await until(lambda: not line_of(warden))
    (house.work / "go").touch()
    result = await run.result()
    assert (result.status, result.text) == (RunStatus.COMPLETED, "well"), result.failure
    await house.goes_on(session)  # with the same process
    await house.goes_on(session, options=house.options(keep=False))  # and with another


async def test_both_are_killed_and_nothing_is_left_of_the_run(house: RealAgentHarness) -> None:
    session, run = await in_a_tool(house)
    warden, guard, _ = _chain(house)
    for each in (warden, guard):
        os.kill(each, signal.SIGKILL)
    result = await run.result()
    assert result.failure is not None
    assert (result.failure.kind, result.failure.resumable) == (FailureKind.PROCESS_EXITED, True)
    await until(lambda: not list(living(house.work)))
    await house.goes_on(session)


async def in_a_tool(house: RealAgentHarness) -> tuple[SessionHandle, RunHandle]:
    """Start a session whose tool waits for a file called `go`."""
    session = await house.session("full_auto")
    await house.play([[ModelSay(text="one")]], session)
    await until(lambda: _is_kept(house, "one"))
    waits = "touch begun; until [ -e go ]; do sleep 0.05; done"
    run = await house.submit(
        session, [[ModelCall(tool="shell", input={"command": waits})], [ModelSay(text="well")]]
    )
    await until((house.work / "begun").exists)
    return session, run


def _chain(house: RealAgentHarness) -> tuple[int, int, int]:
    """Return the pids of the spawner, the reaper of the only tree, and its Claude Code."""
    (claude,) = programs_of(house)
    guard = parent_of(claude)
    assert guard is not None
    warden = parent_of(guard)
    assert warden is not None
    return warden, guard, claude


def _is_kept(house: RealAgentHarness, text: str) -> bool:
    """Whether a session with this text is on disk."""
    return is_kept(house.work.parent, f'"{text}"')


def _send(house: RealAgentHarness, blow: signal.Signals, work: Path | None = None) -> None:
    for place in Path("/proc").glob("[0-9]*"):
        try:
            line = (place / "cmdline").read_bytes()
            if (
                line.startswith(bytes(house.program))
                and (work or house.work) == (place / "cwd").readlink()
            ):
                os.kill(int(place.name), blow)
        except OSError:
            continue
