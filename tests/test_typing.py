"""The programs that type checkers read also run."""

from trio.testing import MockClock

from sessionmgr import RunStatus
from tests import typing_sample


async def test_events_are_told_apart_by_their_type(autojump_clock: MockClock) -> None:
    assert await typing_sample.stream() == "one two three"
    assert await typing_sample.text() == "one two three\n\ndone"


async def test_short_forms_run_one_prompt(autojump_clock: MockClock) -> None:
    assert await typing_sample.short_forms() == ["done", "count", "Hi"]
    assert await typing_sample.pipeline() == "Review: done"
    assert await typing_sample.own_adapter() == "Hello big world: 3"


async def test_batches_take_jobs_of_every_plain_form(autojump_clock: MockClock) -> None:
    assert await typing_sample.fan_out() == {"a.py": "short", "b.py": "short"}
    assert await typing_sample.plain_dicts() == ["a", "b", "run"]


async def test_programs_with_approval_supervision_and_timeouts_run(
    autojump_clock: MockClock,
) -> None:
    assert await typing_sample.approval() is RunStatus.COMPLETED
    assert await typing_sample.supervision() == "gave up"
    assert await typing_sample.timeouts() == (RunStatus.TIMED_OUT, True)
    assert await typing_sample.first() == "codex wins"
    assert await typing_sample.after_a_crash() == ("done", "and now?")
