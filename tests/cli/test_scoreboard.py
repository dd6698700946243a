"""Without a terminal, progress is a line every few seconds, and less often as time goes by."""

import logging
import os
import threading
from collections.abc import Callable
from functools import partial

import pytest
import trio

from sessionmgr.batch import Progress
from sessionmgr.cli.scoreboard import Scoreboard, log_shown_on
from tests.cli.pipes import pipe, pseudo_terminal, said_at, unread_pipe


async def shown_for(seconds: int, scoreboard: Scoreboard) -> None:
    for second in range(seconds):
        await scoreboard.refresh(Progress(total=9, running=1, elapsed=second))
    await scoreboard.clear()


async def test_lines_come_at_growing_distances() -> None:
    with pipe() as (ours, stream):
        await shown_for(600, Scoreboard(stream, quiet=False))
        lines = os.read(ours, 65536).decode().splitlines()
    assert lines[0] == "0 of 9 jobs: 0 done, 1 running; 5.0 s gone"
    assert lines[1].endswith("; 10 s gone")
    assert 20 < len(lines) < 45


async def test_quiet_tells_no_progress_but_lines_that_stay() -> None:
    with pipe() as (ours, stream):
        scoreboard = Scoreboard(stream, quiet=True)
        scoreboard.say("it \x1b[2Jfailed", "bad")
        await shown_for(60, scoreboard)
        assert os.read(ours, 65536) == b"it failed\n"


async def test_it_is_shown_until_it_is_cancelled() -> None:
    with pipe() as (ours, stream), trio.fail_after(30):
        scoreboard = Scoreboard(stream, quiet=False)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(scoreboard.show, lambda: Progress(total=9, elapsed=7.0))
            await trio.lowlevel.wait_readable(ours)
            nursery.cancel_scope.cancel()
        assert os.read(ours, 65536) == b"0 of 9 jobs: 0 done, 0 running; 7.0 s gone\n"


async def test_the_log_is_shown_above_the_progress() -> None:
    logger = logging.getLogger("sessionmgr.test.scoreboard")
    logger.propagate = False
    with pipe() as (ours, stream):
        handler = logging.StreamHandler(stream)
        logger.addHandler(handler)
        scoreboard = Scoreboard(stream, quiet=False)
        with log_shown_on(scoreboard, logger.name, stream):
            logger.warning("one\ntwo")
            await shown_for(1, scoreboard)
            assert os.read(ours, 65536) == b"one\ntwo\n"
        assert handler.stream is stream
        logger.removeHandler(handler)


async def test_a_reader_that_is_gone_does_not_end_the_batch() -> None:
    with unread_pipe() as stream:
        scoreboard = Scoreboard(stream, quiet=False)
        await shown_for(30, scoreboard)
        scoreboard.say("still there")
        await scoreboard.clear()


async def test_no_line_is_lost_that_is_said_while_others_are_shown() -> None:
    class Slow(str):
        """While it is looked at, another thread shows what there is."""

        __slots__ = ()

        def isascii(self) -> bool:
            thread = threading.Thread(target=trio.run, args=(scoreboard.clear,))
            thread.start()
            thread.join(60)
            return super().isascii()

    with pipe() as (ours, stream):
        scoreboard = Scoreboard(stream, quiet=True)
        scoreboard.say("one")
        scoreboard.say(Slow("two"))
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
        scoreboard = Scoreboard(stream, quiet=False)
        with monkeypatch.context() as late:
            late.setattr(trio.to_thread, "run_sync", never)
            with trio.move_on_after(0):
                await scoreboard.refresh(Progress(total=9))
        scoreboard.say("all is over")
        await scoreboard.clear()
        for work in given_up:
            work()
        said = said_at(ours, stream.fileno())
    assert len(given_up) == 1
    assert b"all is over" in said
    assert b"of 9 jobs" not in said
