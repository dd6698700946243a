"""An app-server that finds its home incomplete is started again, a limited number of times."""

from __future__ import annotations

from pathlib import Path

import pytest

from sessionmgr.manager import Clocks, open_manager
from sessionmgr.model import AnyEvent, ErrorOccurred, FailureKind, Json, RunResult
from sessionmgr.testing.player import UntilClosedStep, WriteStep, command_of
from sessionmgr_adapters.codex import CodexAdapter
from sessionmgr_adapters.codex.failures import MAX_STARTS, lost_start_race
from tests.adapters.codex.dialect import CODEX

LOST = "Error: failed to initialize sqlite state runtime under /home"
MIGRATION = (
    "failed to open thread history database: failed to migrate thread history DB at /home/x.sqlite:"
    " while executing migration 2: error returned from database: (code: 1) duplicate column name: a"
)
BEHIND = "internal error: thread history projection for x is behind durable rollout"
ONCE = f"[ -e tried ] || {{ touch tried; echo '{LOST}' >&2; exit 1; }}; exec \"$@\""
ALWAYS = f"echo '{LOST}' >&2; exit 1"


async def played(place: Path, script: str) -> tuple[RunResult, list[AnyEvent]]:
    steps = [*CODEX.opening, WriteStep(CODEX.end), UntilClosedStep()]
    player = command_of(steps, place / "playbook.json")
    command: list[Json] = ["/bin/sh", "-c", f"cd '{place}'; {script}", "sh", *player]
    async with open_manager(adapters={"codex": CodexAdapter}, clocks=Clocks(close=1.0)) as manager:
        session = await manager.open_session("codex", cwd=place)
        run = await session.submit("hi", options={"command": command})
        result = await run.result()
        return result, [each async for each in run]


def warnings(events: list[AnyEvent]) -> list[FailureKind]:
    return [each.failure.kind for each in events if isinstance(each, ErrorOccurred)]


async def test_it_is_started_again(tmp_path: Path) -> None:
    result, events = await played(tmp_path, ONCE)
    assert result.status == "completed", result.failure
    assert warnings(events) == [FailureKind.START_FAILED]


async def test_it_is_not_started_for_ever(tmp_path: Path) -> None:
    result, events = await played(tmp_path, ALWAYS)
    assert result.failure is not None
    assert result.failure.kind is FailureKind.PROCESS_EXITED
    assert LOST in result.failure.message
    assert len(warnings(events)) == MAX_STARTS - 1


@pytest.mark.parametrize(
    ("stderr", "tries", "lost"),
    [
        (LOST, 1, True),
        (LOST, MAX_STARTS, False),
        (f"Error: thread/fork: thread/fork failed: {MIGRATION} (code -32603)", 1, True),
        (f"Error: thread/fork: thread/fork failed: {BEHIND} (code -32603)", 1, True),
        ("failed to open DB at x.sqlite: (code: 5) database is locked (code -32603)", 1, True),
        ("Error loading config.toml", 1, False),
        ("", 1, False),
    ],
)
def test_only_that_is_tried_again(stderr: str, tries: int, lost: bool) -> None:
    assert lost_start_race(stderr, tries) == lost
