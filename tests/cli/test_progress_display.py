"""Without a terminal, progress prints a line after a change, and else at growing intervals."""

import logging
import os
import threading
from collections.abc import Callable
from functools import partial

import pytest
import trio

from sessionmgr.batch import BatchProgress, WaitStatus
from sessionmgr.cli.terminal.progress_display import ProgressDisplay, redirect_log
from tests.cli.pipes import pipe, pseudo_terminal, read_terminal, unread_pipe


async def shown_for(seconds: int, scoreboard: ProgressDisplay) -> None:
    for second in range(seconds):
        await scoreboard.refresh(BatchProgress(total=9, running=1, elapsed=second))
    await scoreboard.clear()


async def lines_of(*progress: BatchProgress) -> list[str]:
    """Return the plain lines for some states of a batch, one after the other."""
    with pipe() as (ours, stream):
        scoreboard = ProgressDisplay(stream, quiet=False)
        for each in progress:
            await scoreboard.refresh(each)
        scoreboard.print_line("the end")
        await scoreboard.clear()
        *lines, _ = os.read(ours, 65536).decode().splitlines()
    return lines


def at(line: str) -> str:
    """Return when a line was printed."""
    return line.partition("; ")[2].removesuffix(" elapsed")


async def test_lines_come_at_growing_distances_up_to_ten_minutes() -> None:
    seconds = range(0, 2500, 5)
    lines = await lines_of(*(BatchProgress(total=9, running=1, elapsed=each) for each in seconds))
    assert lines[0] == "0 of 9 jobs: 0 done, 1 running; 5.0 s elapsed"
    assert [at(line) for line in lines] == [
        *("5.0 s", "15 s", "35 s", "1 min 15 s", "2 min 35 s", "5 min 15 s", "10 min 35 s"),
        *("20 min 35 s", "30 min 35 s", "40 min 35 s"),
    ]


async def test_a_change_is_reported_within_five_seconds_of_the_last_line() -> None:
    ends = {100.0, 101.0, 1000.0}
    done, told = 0, list[BatchProgress]()
    for elapsed in range(1200):
        done += elapsed in ends
        told.append(BatchProgress(total=9, running=1, done=done, elapsed=elapsed))
    lines = await lines_of(*told)
    assert [at(line) for line in lines] == [
        *("5.0 s", "15 s", "35 s", "1 min 15 s"),
        *("1 min 40 s", "1 min 45 s", "1 min 55 s"),
        *("2 min 15 s", "2 min 55 s", "4 min 15 s", "6 min 55 s", "12 min 15 s"),
        *("16 min 40 s", "16 min 50 s", "17 min 10 s", "17 min 50 s", "19 min 10 s"),
    ]


async def test_what_holds_up_the_jobs_is_reported_at_once() -> None:
    waits = (WaitStatus(what="store", seconds=2.0, why="it is full"),)
    lines = await lines_of(
        BatchProgress(total=9, elapsed=5.0),
        BatchProgress(total=9, elapsed=5.2, waits=waits),
        BatchProgress(total=9, elapsed=5.4, waits=waits),
        BatchProgress(total=9, elapsed=6.0),
        BatchProgress(total=9, elapsed=11.0),
    )
    full = "waiting for the store: it is full (2.0 s so far)"
    assert lines == [
        "0 of 9 jobs: 0 done, 0 running; 5.0 s elapsed",
        f"0 of 9 jobs: 0 done, 0 running; 5.2 s elapsed; {full}",
        "0 of 9 jobs: 0 done, 0 running; 6.0 s elapsed",
    ]


async def test_quiet_tells_no_progress_but_lines_that_stay() -> None:
    with pipe() as (ours, stream):
        scoreboard = ProgressDisplay(stream, quiet=True)
        scoreboard.print_line("it \x1b[2Jfailed", "bad")
        await shown_for(60, scoreboard)
        assert os.read(ours, 65536) == b"it failed\n"


async def test_it_is_shown_until_it_is_cancelled() -> None:
    with pipe() as (ours, stream), trio.fail_after(30):
        scoreboard = ProgressDisplay(stream, quiet=False)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(scoreboard.show, lambda: BatchProgress(total=9, elapsed=7.0))
            await trio.lowlevel.wait_readable(ours)
            nursery.cancel_scope.cancel()
        assert os.read(ours, 65536) == b"0 of 9 jobs: 0 done, 0 running; 7.0 s elapsed\n"


async def test_the_log_is_shown_above_the_progress() -> None:
    logger = logging.getLogger("sessionmgr.test.scoreboard")
    logger.propagate = False
    with pipe() as (ours, stream):
        handler = logging.StreamHandler(stream)
        logger.addHandler(handler)
        scoreboard = ProgressDisplay(stream, quiet=False)
        with redirect_log(scoreboard, logger.name, stream):
            logger.warning("one\ntwo")
            await shown_for(1, scoreboard)
            assert os.read(ours, 65536) == b"one\ntwo\n"
        assert handler.stream is stream
        logger.removeHandler(handler)


async def test_a_reader_that_is_gone_does_not_end_the_batch() -> None:
    with unread_pipe() as stream:
        scoreboard = ProgressDisplay(stream, quiet=False)
        await shown_for(30, scoreboard)
        scoreboard.print_line("still there")
        await scoreboard.clear()


async def test_no_line_is_lost_that_is_said_while_others_are_shown() -> None:
    class Slow(str):
        """A text that lets another thread draw while it is being formatted."""

        __slots__ = ()

        def isascii(self) -> bool:
            thread = threading.Thread(target=trio.run, args=(scoreboard.clear,))
            thread.start()
            thread.join(60)
            return super().isascii()

    with pipe() as (ours, stream):
        scoreboard = ProgressDisplay(stream, quiet=True)
        scoreboard.print_line("one")
        scoreboard.print_line(Slow("two"))
        await scoreboard.clear()
        assert os.read(ours, 65536) == b"one\ntwo\n"


async def test_a_picture_that_comes_too_late_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    given_up: list[Callable[[], object]] = []

    async def never(work: Callable[..., object], *given: object, abandon_on_cancel: bool) -> None:
        assert abandon_on_cancel
        given_up.append(partial(work, *given))
        await trio.sleep_forever()

    with pseudo_terminal() as (ours, stream):
        scoreboard = ProgressDisplay(stream, quiet=False)
        with monkeypatch.context() as late:
            late.setattr(trio.to_thread, "run_sync", never)
            with trio.move_on_after(0):
                await scoreboard.refresh(BatchProgress(total=9))
        scoreboard.print_line("all is over")
        await scoreboard.clear()
        for work in given_up:
            work()
        said = read_terminal(ours, stream.fileno())
    assert len(given_up) == 1
    assert b"all is over" in said
    assert b"of 9 jobs" not in said
