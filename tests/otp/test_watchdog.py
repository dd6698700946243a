"""Watchdog: which child blocks the loop, and where."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

import pytest
import trio

from sessionmgr.otp import StartFailed, Supervisor, child, watchdog
from tests.otp.puppets import Puppet, RunCast

THRESHOLD = 0.05


class ReportHandler(logging.Handler):
    """Hears, in the watchdog's thread, what it reports of one blockage, and wakes the test.

    On a busy machine others may be late as well, through no fault of theirs, and the child that
    is listened for may be late with something else.
    """

    def __init__(self, child: str, block: str) -> None:
        super().__init__()
        self.child = child
        self.block = f"in {block}\n"
        self.records: list[logging.LogRecord] = []
        self.heard = trio.Event()
        self.reported = threading.Event()
        self.token = trio.lowlevel.current_trio_token()

    def emit(self, record: logging.LogRecord) -> None:
        said = vars(record)
        heard = (said.get("event"), said.get("child"))
        if heard == ("loop_blocked", self.child) and self.block in said["stack"]:
            self.records.append(record)
            self.reported.set()
            self.token.run_sync_soon(self.heard.set)


@contextmanager
def listening(child: str, block: str = "hog") -> Generator[ReportHandler]:
    log = logging.getLogger("sessionmgr.otp")
    ear = ReportHandler(child, block)
    log.addHandler(ear)
    try:
        yield ear
    finally:
        log.removeHandler(ear)


def watchdogs() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "sessionmgr.otp watchdog"]


def hog(until: threading.Event) -> None:
    """Keep the thread until the watchdog has said so, but not for ever."""
    assert until.wait(60)


def spin(until: threading.Event) -> None:
    """Compute, until the watchdog has said so."""
    for _ in range(10**9):
        if until.is_set():
            return
    raise AssertionError("the watchdog noticed nothing")


@pytest.mark.parametrize("block", [hog, spin])
async def test_a_handler_that_blocks_the_loop_is_reported_with_its_child_and_its_stack(
    block: Callable[[threading.Event], None],
) -> None:
    async def handler(_puppet: Puppet) -> None:
        block(ear.reported)

    watch = child(watchdog, THRESHOLD, shutdown="brutal_kill")
    with listening("root/busy", block.__name__) as ear:
        async with Supervisor(watch, child(Puppet, id="busy"), name="root") as sup:
            sup.ref("busy", Puppet).cast(RunCast(handler))
            with trio.fail_after(60):
                await ear.heard.wait()
    assert "in handle_cast" in vars(ear.records[0])["stack"]
    assert ear.records[0].levelno == logging.ERROR
    assert (
        ear.records[0]
        .getMessage()
        .startswith("The event loop is blocked. child=root/busy seconds=")
    )


async def test_a_long_blockage_is_reported_once() -> None:
    async def handler(_puppet: Puppet) -> None:
        hog(ear.reported)
        threading.Event().wait(6 * THRESHOLD)

    with listening("supervisor/busy") as ear:
        async with Supervisor(child(watchdog, THRESHOLD), child(Puppet, id="busy")) as sup:
            sup.ref("busy", Puppet).cast(RunCast(handler))
            with trio.fail_after(60):
                await ear.heard.wait()
    assert len(ear.records) == 1


async def test_whoever_is_no_child_is_reported_as_such() -> None:
    with listening("none (code outside of supervised children)") as ear:
        async with Supervisor(child(watchdog, THRESHOLD)):
            hog(ear.reported)
            with trio.fail_after(60):
                await ear.heard.wait()
    assert len(ear.records) == 1


async def test_the_watchdogs_thread_ends_with_it() -> None:
    threads: list[threading.Thread] = []
    before = watchdogs()
    async with Supervisor(child(watchdog, THRESHOLD)):
        threads += [thread for thread in watchdogs() if thread not in before]
        assert len(threads) == 1
    threads[0].join(60)
    assert not threads[0].is_alive()


async def test_in_virtual_time_there_is_no_watchdog(autojump_clock: object) -> None:
    before = watchdogs()
    async with Supervisor(child(watchdog, THRESHOLD, id="dog")) as sup:
        assert sup.ref("dog").alive
        await trio.sleep(1000)
        assert watchdogs() == before


@pytest.mark.parametrize("threshold", [0, -1])
async def test_a_threshold_is_more_than_nothing(threshold: float, autojump_clock: object) -> None:
    async with Supervisor() as sup:
        with pytest.raises(StartFailed) as failed:
            await sup.start_child(child(watchdog, threshold))
        assert isinstance(failed.value.__cause__, ValueError)
