"""The progress of a batch fits any terminal, and shows the oldest jobs."""

from hypothesis import given, strategies as st

from sessionmgr.batch import BatchProgress, PauseStatus, RunningJob, WaitStatus
from sessionmgr.cli.terminal.follow_batch import stopping_message
from sessionmgr.cli.terminal.format_time import format_clock
from sessionmgr.cli.terminal.render_progress import Line, line_width, progress_line, render_progress
from sessionmgr.model import Provenance
from sessionmgr.model.timestamps import parse_timestamp


def running(number: int, **more: object) -> RunningJob:
    said = {
        "job": f"fix-issue-{number:04}",
        "provider": "claude",
        "attempt": 1,
        "age": 118.0 - number,
        "doing": "Bash: npm test",
        "doing_for": 41.0,
    }
    return RunningJob(**{**said, **more})  # type: ignore[arg-type]


def progress(on: int, **more: object) -> BatchProgress:
    said = {
        "total": 500,
        "done": 118,
        "failed": 3,
        "running": on,
        "waiting": 379 - on,
        "tokens": 1_234_567,
        "usd": 3.41,
        "provenance": Provenance.REPORTED,
        "elapsed": 62.0,
        "rate": 2.1,
        "eta": 190.0,
        "jobs": tuple(running(n) for n in range(on)),
    }
    return BatchProgress(**{**said, **more})  # type: ignore[arg-type]


def text_of(lines: list[Line]) -> list[str]:
    return ["".join(piece.text for piece in line).rstrip() for line in lines]


def test_jobs_in_several_directories_show_theirs() -> None:
    jobs = (
        running(1, directory="/srv/api"),
        running(2, directory="/srv/a-long-name-of-a-repository"),
    )
    lines = text_of(render_progress(progress(2, jobs=jobs), 80, 24))
    assert lines[-2:] == [
        "  fix-issue-0001       claude    api          1m57s  Bash: npm test, 41s",
        "  fix-issue-0002       claude    a-lon…tory   1m56s  Bash: npm test, 41s",
    ]
    (line,) = text_of(render_progress(progress(1, jobs=jobs[1:]), 120, 24))[-1:]
    assert "  a-long-nam…epository  " in line


def test_a_picture_at_eighty_columns() -> None:
    jobs = (
        running(1),
        running(2, provider="codex", attempt=2, doing="thinking", doing_for=0.2),
        running(3, doing="Edit: src/server/handlers/authentication.py"),
    )
    assert text_of(render_progress(progress(3, jobs=jobs), 80, 24)) == [
        "━━━━━━━━━━━━──────────────────────────────────────  121 of 500 jobs  1 min 02 s",
        "118 done  3 failed  3 running  376 waiting  2.1/s  3 min 10 s left",
        "1.2 M tokens  $3.41",
        "  fix-issue-0001       claude     1m57s  Bash: npm test, 41s",
        "  fix-issue-0002       codex      1m56s  try 2: thinking",
        "  fix-issue-0003       claude     1m55s  Edit: src/server/handlers/authen…, 41s",
    ]


def test_a_provider_that_is_left_alone_is_reported_with_until_when_and_why() -> None:
    until = "2026-11-19T03:12:00.000Z"
    pause = PauseStatus(seconds=870.0, until=until, why="429: too many requests")
    paused = progress(0, paused={"claude": 870.0}, pauses={"claude": pause}, eta=None)
    at = format_clock(parse_timestamp(until), parse_timestamp(until) - 870)
    said = f"claude paused until {at}, 14 min 30 s to go (429: too many requests)"
    assert text_of(render_progress(paused, 80, 24))[1] == said
    assert progress_line(paused).endswith(f"; {said}")


def test_what_holds_up_all_jobs_is_reported_while_it_lasts() -> None:
    full = WaitStatus(what="store", seconds=41, why="runs.db has no room to grow")
    said = "waiting for the store: runs.db has no room to grow (41 s so far)"
    assert text_of(render_progress(progress(3, waits=(full,)), 80, 24))[1] == said
    assert progress_line(progress(3, waits=(full,))).count(said) == 1
    silent = progress_line(progress(3, waits=(WaitStatus(what="store", seconds=5),)))
    assert "store: locked by another process, or its disk is slow (5.0 s so far)" in silent


def test_a_picture_at_forty_columns_leaves_out_the_provider() -> None:
    assert text_of(render_progress(progress(1), 40, 24)) == [
        "━━────────  121 of 500 jobs  1 min 02 s",
        "118 done  3 failed  1 running",
        "378 waiting  2.1/s  3 min 10 s left",
        "1.2 M tokens  $3.41",
        "  fix-is…e-0000   1m58s  Bash: np…, 41s",
    ]


def test_what_there_is_no_room_for_is_counted() -> None:
    lines = text_of(render_progress(progress(500), 80, 10))
    assert len(lines) == 9
    assert "fix-issue-0000" in lines[3]
    assert lines[-1] == "  … and 495 more"


def test_a_low_terminal_shows_the_totals_first() -> None:
    assert text_of(render_progress(progress(16), 80, 3))[1].startswith("118 done")
    assert len(render_progress(progress(16), 80, 2)) == 1


def test_while_jobs_are_read_there_is_no_bar() -> None:
    first = text_of(render_progress(progress(1, total=None, eta=None), 80, 24))[0]
    assert first == "121 jobs, more are being read  1 min 02 s"


def test_what_an_agent_does_cannot_move_the_terminal() -> None:
    hostile = "\x1b[2JBash\r\n\x07"
    jobs = (running(1, job=hostile, provider=hostile, doing=hostile),)
    for line in text_of(render_progress(progress(1, jobs=jobs), 80, 24)):
        assert line.isprintable()
    assert progress_line(progress(1, jobs=jobs)).isprintable()


NAMES = st.text(st.sampled_from("ab-漢字é\u0301\x1b[1m"), max_size=60)
AMOUNTS = st.floats(0, 10**6)


@given(
    st.lists(
        st.builds(
            RunningJob,
            job=NAMES,
            provider=NAMES,
            attempt=st.integers(1, 99),
            age=AMOUNTS,
            doing=NAMES,
            doing_for=AMOUNTS,
        ),
        max_size=30,
    ),
    st.one_of(st.none(), st.integers(0, 10**6)),
    st.integers(0, 10**6),
    st.integers(1, 220),
    st.integers(1, 60),
)
def test_a_picture_fits_its_terminal(
    jobs: list[RunningJob], total: int | None, done: int, width: int, height: int
) -> None:
    shown = progress(len(jobs), jobs=tuple(jobs), total=total, done=done)
    lines = render_progress(shown, width, height)
    assert 1 <= len(lines) <= max(1, height - 1)
    assert all(line_width(line) <= max(1, width - 1) for line in lines)


def test_without_a_terminal_all_is_said_in_one_line() -> None:
    assert progress_line(progress(2)) == (
        "121 of 500 jobs: 118 done, 3 failed, 2 running, 377 waiting, 2.1/s, 3 min 10 s left, "
        "1.2 M tokens, $3.41; 1 min 02 s elapsed; oldest: fix-issue-0000, 1m58s (Bash: npm test)"
    )
    bare = BatchProgress(total=1, running=1)
    assert progress_line(bare) == "0 of 1 job: 0 done, 1 running; 0.0 s elapsed"


def test_a_signal_is_answered_with_what_it_stops() -> None:
    assert stopping_message("Ctrl-C", 2) == (
        "Ctrl-C: stopping 2 running jobs; press Ctrl-C again to kill them"
    )
    assert stopping_message("SIGTERM", 1) == (
        "SIGTERM: stopping 1 running job; press Ctrl-C again to kill it"
    )
    assert stopping_message("Ctrl-C", 0) == "Ctrl-C: stopping"
