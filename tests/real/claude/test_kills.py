"""A real Claude Code is killed, and what that costs: its run, at most."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from sessionmgr.model import ErrorOccurred, FailureKind, RunStatus
from sessionmgr.testing.model_server import Call, Say, Script, prompt_with
from sessionmgr_adapters.claude import ClaudeAdapter
from tests.real.claude.house import House, living, until

SLEEP = "touch begun; sleep 1000; echo over"


@pytest.mark.parametrize("long", [False, True], ids=["here", "where the path is long"])
async def test_a_child_that_is_killed_in_a_tool_costs_its_run(any_house: House, long: bool) -> None:
    work = any_house.work
    if long:
        work = any_house.place("p" * 120) / ("q" * 120)
        work.mkdir()
    session = await any_house.session("full_auto", cwd=work)
    first = await any_house.play([[Say(text="one")]], session)
    script: Script = [[Call(tool="shell", input={"command": SLEEP})]]
    run = await session.submit(prompt_with(script), options=any_house.options())
    await until(lambda: any("sleep" in each for each in living(work)))
    _send(any_house, signal.SIGKILL, work)
    result = await run.result()
    assert result.status is RunStatus.FAILED
    assert result.failure is not None
    assert result.failure.kind in {FailureKind.KILLED_BY_OS, FailureKind.PROCESS_EXITED}
    assert (result.failure.retryable, result.failure.resumable) == (True, True)
    await until(lambda: not any("sleep" in each for each in living(work)))
    again = await any_house.play([[Say(text="two")]], session)
    assert again.result.text == "two", again.result.failure
    assert again.result.provider_session_id == first.result.provider_session_id


async def test_a_child_that_is_killed_at_rest_costs_nothing(house: House) -> None:
    assert await goes_on_after(house, lambda: _send(house, signal.SIGKILL)) == []


async def test_a_child_that_stands_still_is_replaced_by_one_of_the_runs_own(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def strike() -> None:
        monkeypatch.setattr(ClaudeAdapter, "patience", 2.0)
        _send(house, signal.SIGSTOP)

    assert await goes_on_after(house, strike) == ["fallback_hung"]


async def goes_on_after(house: House, strike: Callable[[], None]) -> list[str | None]:
    """Strike a child at rest, and see that its session goes on; return what was told of it."""
    session = await house.session("full_auto")
    first = await house.play([[Say(text="one")]], session)
    await until(lambda: _is_kept(house, "one"))
    strike()
    again = await house.play([[Say(text="two")]], session)
    assert again.result.text == "two", again.result.failure
    assert again.result.provider_session_id == first.result.provider_session_id
    errors = [each for each in again.events if isinstance(each, ErrorOccurred)]
    return [each.failure.provider_code for each in errors]


def _is_kept(house: House, text: str) -> bool:
    """Whether a session with this text in it is on disk."""
    kept = house.work.parent.glob("home/.claude/projects/*/*.jsonl")
    return any(f'"{text}"' in each.read_text() for each in kept)


def _send(house: House, blow: signal.Signals, work: Path | None = None) -> None:
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
