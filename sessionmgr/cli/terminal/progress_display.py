"""Progress of a running batch: a live display on a terminal, else a line now and then."""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, TextIO, cast

import trio

from sessionmgr.cli.terminal.live_area import LiveArea
from sessionmgr.cli.terminal.render_progress import progress_line, render_progress
from sessionmgr.cli.terminal.safe_text import encode_text, strip_controls

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from sessionmgr.batch import BatchProgress

REFRESH: Final = 0.2
"""Seconds between two updates."""
FIRST_GAP: Final = 5.0
LAST_GAP: Final = 600.0
"""Maximum seconds between two plain lines; the gap doubles while nothing changes."""


class ProgressDisplay:
    """Shows progress and permanent lines on stderr. Quiet, it shows no progress."""

    def __init__(self, stream: TextIO | None, *, quiet: bool) -> None:
        self._stream = stream
        self._quiet: Final = quiet
        self._painter: Final = _live_area_for(stream)
        self._queue: Final = deque[tuple[str, str]]()
        self._one_at_a_time: Final = threading.Lock()
        self._turn = self._shown = 0
        self._last_line_at = 0.0
        self._gap = FIRST_GAP
        self._last_state: tuple[object, ...] | None = None

    @property
    def is_live(self) -> bool:
        """Whether the progress is drawn at the bottom of a terminal."""
        return self._painter is not None

    def print_line(self, text: str, tone: str = "plain") -> None:
        """Print a permanent line."""
        self._queue.append((strip_controls(text), tone))

    async def show(self, progress: Callable[[], BatchProgress]) -> None:
        """Show the progress until this is cancelled."""
        while True:
            await self.refresh(progress())
            await trio.sleep(REFRESH)

    async def clear(self) -> None:
        """Print the remaining lines, and remove the progress."""
        await self._draw_in_turn(None)

    async def refresh(self, progress: BatchProgress) -> None:
        """Show the present progress if an update is due."""
        if self._painter is None and not self._quiet and self._is_line_due(progress):
            self.print_line(progress_line(progress))
        if self._painter is None and not self._queue:
            return
        await self._draw_in_turn(progress)

    def _is_line_due(self, progress: BatchProgress) -> bool:
        """Return whether a plain line is due: after a change, or after a long silence.

        A stall of the jobs is reported at once, any other change 5 s after the last line.
        """
        state = _state_of(progress)
        known, silent_for = self._last_state, progress.elapsed - self._last_line_at
        is_held_up = state[0] != (known[0] if known else ())
        has_changed = known is not None and state != known
        if not is_held_up and silent_for < (FIRST_GAP if has_changed else self._gap):
            return False
        self._gap = FIRST_GAP if has_changed or is_held_up else self._gap
        self._gap = min(2 * self._gap, LAST_GAP)
        self._last_line_at, self._last_state = progress.elapsed, state
        return True

    async def _draw_in_turn(self, progress: BatchProgress | None) -> None:
        self._turn += 1
        work = partial(self._write, self._turn, progress)
        await trio.to_thread.run_sync(work, abandon_on_cancel=True)

    def _write(self, turn: int, progress: BatchProgress | None) -> None:
        with self._one_at_a_time:
            if turn < self._shown:
                return  # the write was abandoned, and its thread is late: the picture is outdated
            self._shown = turn
            # Lines may be added meanwhile: they enter the same queue, and are taken one by one.
            said = [self._queue.popleft() for _ in range(len(self._queue))]
            try:
                if self._painter is not None:
                    shown = progress if not self._quiet else None
                    lines = [] if shown is None else render_progress(shown, *self._painter.size())
                    self._painter.draw(lines, said)
                elif self._stream is not None and said:
                    text = "".join(f"{line}\n" for line, _ in said)
                    data = memoryview(encode_text(text, self._stream.encoding or "utf-8"))
                    while data:
                        data = data[os.write(self._stream.fileno(), data) :]
            except OSError:
                self._stream = None  # the reader is gone; the batch continues


def _state_of(progress: BatchProgress) -> tuple[object, ...]:
    """Return the parts of the progress that trigger a line; the first part holds up jobs."""
    held_up = (frozenset(progress.paused), frozenset(each.what for each in progress.waits))
    counts = (progress.done, progress.failed, progress.cancelled, progress.running)
    return (
        held_up if any(held_up) else (),
        *(progress.total, *counts, progress.waiting, progress.retrying, progress.denied),
    )


class LogStream:
    """Stream for the log that prints its lines above the progress."""

    def __init__(self, display: ProgressDisplay) -> None:
        self._display: Final = display

    def write(self, text: str) -> None:
        """Print the lines."""
        for line in text.splitlines():
            self._display.print_line(line, "warning")

    def flush(self) -> None:
        """Do nothing: the stream has no buffer."""


@contextmanager
def redirect_log(display: ProgressDisplay, name: str, stream: TextIO | None) -> Generator[None]:
    """Redirect a logger from a stream to the progress display, for a while."""
    diverted: list[logging.StreamHandler[TextIO | LogStream]] = []
    for handler in logging.getLogger(name).handlers:
        if isinstance(handler, logging.StreamHandler):
            found = cast("logging.StreamHandler[TextIO | LogStream]", handler)
            if stream is not None and found.stream is stream:
                found.setStream(LogStream(display))
                diverted.append(found)
    try:
        yield
    finally:
        for each in diverted:
            assert stream is not None
            each.setStream(stream)


def _live_area_for(stream: TextIO | None) -> LiveArea | None:
    if stream is None or not stream.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return None
    return LiveArea(stream)
