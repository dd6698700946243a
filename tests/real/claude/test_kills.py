"""A real Claude Code is killed, and what that costs: its run, at most."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from sessionmgr.model import FailureKind, RunStatus
from sessionmgr.testing.model_server import Call, Say, Script, prompt_with
from tests.real.claude.house import House, living, until

SLEEP = "touch begun; sleep 1000; echo over"


@pytest.mark.parametrize("when", ["in a tool", "at rest"])
async def test_a_child_that_is_killed_costs_its_run_at_most(any_house: House, when: str) -> None:
    session = await any_house.session("full_auto")
    first = await any_house.play([[Say(text="one")]], session)
    if when == "in a tool":
        script: Script = [[Call(tool="shell", input={"command": SLEEP})]]
        run = await session.submit(prompt_with(script), options=any_house.options())
        await until(lambda: any("sleep" in each for each in living(any_house.work)))
        _kill(any_house)
        result = await run.result()
        assert result.status is RunStatus.FAILED
        assert result.failure is not None
        assert result.failure.kind in {FailureKind.KILLED_BY_OS, FailureKind.PROCESS_EXITED}
        assert (result.failure.retryable, result.failure.resumable) == (True, True)
        await until(lambda: not any("sleep" in each for each in living(any_house.work)))
    else:
        await until(lambda: _is_kept(any_house, "one"))  # older ones take their time
        _kill(any_house)
    again = await any_house.play([[Say(text="two")]], session)
    assert again.result.text == "two", again.result.failure
    assert again.result.provider_session_id == first.result.provider_session_id


def _is_kept(house: House, text: str) -> bool:
    """Whether a session with this text in it is on disk."""
    kept = house.work.parent.glob("home/.claude/projects/*/*.jsonl")
    return any(f'"{text}"' in each.read_text() for each in kept)


def _kill(house: House) -> None:
    for place in Path("/proc").glob("[0-9]*"):
        try:
            line = (place / "cmdline").read_bytes()
            if line.startswith(bytes(house.program)) and house.work == (place / "cwd").readlink():
                os.kill(int(place.name), signal.SIGKILL)
        except OSError:
            continue
