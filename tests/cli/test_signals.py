"""The first signal asks to stop, and a repetition within a moment does not count."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from sessionmgr.cli.terminal.signals import ONCE, UNHEARD, SignalWatcher
from tests.cli.command import environment
from tests.cli.pipes import pseudo_terminal


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_that_comes_twice_at_once_is_one(
    number: signal.Signals, mock_clock: MockClock
) -> None:
    before = signal.getsignal(number)
    asked: list[str] = []
    stopping = SignalWatcher(asked.append, lambda: "left")
    async with trio.open_nursery() as nursery:
        await nursery.start(stopping.watch)
        for _ in range(3):
            signal.raise_signal(number)
            await wait_all_tasks_blocked()
            mock_clock.jump(ONCE / 3)
        assert asked == []
        mock_clock.jump(ONCE)
        await wait_all_tasks_blocked()
        assert asked == [number.name] == [stopping.asked_by]
        nursery.cancel_scope.cancel()
    # No signal remains pending until the watcher has stopped.
    assert signal.getsignal(number) is before


async def test_a_signal_that_strikes_while_the_machine_stands_still_is_the_same_one(
    mock_clock: MockClock,
) -> None:
    asked: list[str] = []
    async with trio.open_nursery() as nursery:
        await nursery.start(SignalWatcher(asked.append, lambda: "left").watch)
        signal.raise_signal(signal.SIGTERM)
        mock_clock.jump(UNHEARD)
        signal.raise_signal(signal.SIGTERM)
        mock_clock.jump(60)
        await wait_all_tasks_blocked()
        mock_clock.jump(60)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert asked == ["SIGTERM"]


PAINTING = """
import os, select, signal, threading, trio
from sessionmgr.cli.terminal import signals

signals.BUSY_FOR = 60.0

async def main():
    watching = signals.SignalWatcher(lambda name: None, lambda: "last words")
    async with trio.open_nursery() as nursery:
        await nursery.start(watching.watch)
        threading.Thread(target=os.write, args=(2, b"." * 100_000), daemon=True).start()
        while select.select([], [2], [], 0)[1]:
            pass
        signal.raise_signal(signal.SIGTERM)
        await trio.sleep(2 * signals.ONCE)
        os.close(1)
        signal.raise_signal(signal.SIGTERM)

trio.run(main)
"""
"""Gets two signals while a thread writes to stderr; closes stdout before the second one."""


def test_the_last_words_are_said_though_a_thread_is_writing(tmp_path: Path) -> None:
    with (
        pseudo_terminal() as (ours, theirs),
        subprocess.Popen(
            [sys.executable, "-c", PAINTING],
            env=environment(tmp_path),
            stdout=subprocess.PIPE,
            stderr=theirs,
        ) as process,
    ):
        theirs.close()  # reading then ends with the program
        assert process.stdout is not None
        assert process.stdout.read() == b""
        said = b""
        while not said.endswith(b"last words"):
            said += os.read(ours, 65536)
        assert process.wait(60) == 130
