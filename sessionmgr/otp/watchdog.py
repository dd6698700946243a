"""Watchdog for code that blocks the event loop, which no supervisor can stop.

It is a thread, so that it runs while the loop is blocked. It asks the loop for a sign of life; if
none comes in time, it logs the stack of the loop's thread, which shows the blocking code, and the
name of the child that runs it.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback
from types import FrameType
from typing import Final

import trio

from sessionmgr.otp.child_task import ChildTask
from sessionmgr.otp.crash_boundary import run_child

log: Final = logging.getLogger("sessionmgr.otp")


async def watchdog(
    threshold: float = 1.0, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Log the stack of code that blocks the loop for more than `threshold` seconds.

    This function is used as a child: `Supervisor(child(watchdog, 0.5), ...)`. In virtual time it
    does nothing, because a loop that is busy for a day has lost no second.

    Args:
        threshold: Seconds without a turn of the loop, by default 1.
        task_status: The status by which the supervisor learns of the start.
    """
    if not threshold > 0:
        raise ValueError(f"threshold={threshold}: must be more than 0 seconds")
    if _is_virtual(trio.lowlevel.current_clock()):
        task_status.started()
        await trio.sleep_forever()
    watch = _WatchdogThread(threshold, trio.lowlevel.current_trio_token(), threading.get_ident())
    thread = threading.Thread(target=watch.run, name="sessionmgr.otp watchdog", daemon=True)
    thread.start()
    try:
        task_status.started()
        await trio.sleep_forever()
    finally:
        watch.end.set()


def _is_virtual(clock: trio.abc.Clock) -> bool:
    # In such a clock a tenth of a second of sleep may take no time at all, or forever.
    return clock.deadline_to_sleep_time(clock.current_time() + 1.0) > 2.0


class _WatchdogThread:
    """The watchdog's thread."""

    def __init__(self, threshold: float, token: trio.lowlevel.TrioToken, thread: int) -> None:
        self.end = threading.Event()
        self._threshold = threshold
        self._token = token
        self._thread = thread
        self._sign = threading.Event()

    def run(self) -> None:
        while not self.end.wait(self._threshold / 2):
            self._sign.clear()
            asked = time.monotonic()
            try:
                self._token.run_sync_soon(self._sign.set)
            except trio.RunFinishedError:
                return
            if self._sign.wait(self._threshold):
                continue
            if self.end.is_set():  # not blocked: the watchdog ended before the loop answered
                return
            self._report(asked)
            # Log once for each blockage, however long.
            while not self._sign.wait(self._threshold):
                if self.end.is_set():
                    return

    def _report(self, asked: float) -> None:
        frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage]  # no other way
        frame = frames.get(self._thread)
        if frame is None:
            return
        culprit = _child_in(frame)
        stack = "".join(traceback.format_stack(frame))
        log.error(
            "The event loop is blocked. child=%s seconds=%.1f\n%s",
            culprit,
            time.monotonic() - asked,
            stack.rstrip(),
            extra={"event": "loop_blocked", "child": culprit, "stack": stack},
        )


def _child_in(frame: FrameType | None) -> str:
    """Return the name of the child whose task the stack below `frame` belongs to."""
    while frame is not None:
        if frame.f_code is run_child.__code__:
            record = frame.f_locals["record"]
            return record.name if isinstance(record, ChildTask) else "?"
        frame = frame.f_back
    return "none (code outside of supervised children)"
