"""Ctrl-C: the first one stops all work in order; the second one ends the process at once.

SIGTERM and SIGHUP count as Ctrl-C. After the second signal the launcher ends all child processes,
and the next command on the same store records the end of the runs.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Final, TypeVarTuple

import trio

from sessionmgr.cli.terminal.stdout import recording_interrupts

if TYPE_CHECKING:
    from types import FrameType

Ts = TypeVarTuple("Ts")

INTERRUPTED: Final = 130
ONCE: Final = 0.05
"""Seconds within which a repeated signal counts as the same one: `timeout` sends its own twice."""
UNHEARD: Final = 0.5
"""The same, while the event loop has not handled the first one: several tools may send at once."""
BUSY_FOR: Final = 0.5
"""Seconds for which stderr may be busy before the last message is skipped."""
READER_PATIENCE: Final = 1.0
"""Seconds after a signal within which a reader must take the remaining output."""
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_verb(work: Callable[[*Ts], Awaitable[int]], *args: *Ts) -> int:
    """Run an async function of a verb, and return its exit code.

    A Ctrl-C without a `SignalWatcher` cancels it where it waits, never between two steps of a task.
    """

    async def main() -> int:
        with recording_interrupts():
            return await work(*args)

    return trio.run(main, restrict_keyboard_interrupt_to_checkpoints=True)


class SignalWatcher:
    """Watches for signals in a task of the caller's nursery."""

    def __init__(self, ask: Callable[[str], None], last_words: Callable[[], str]) -> None:
        self.asked_by: str | None = None
        """The name of the signal that asked to stop."""
        self._asked: Final = trio.Event()
        self._ask: Final = ask
        self._last_words: Final = last_words

    async def watch(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Call `ask` with the name of the first signal; end the process at the second."""
        token = trio.lowlevel.current_trio_token()
        first: list[tuple[int, float]] = []
        struck = trio.Event()

        def strike(number: int, frame: FrameType | None) -> None:
            # The handler ends the process itself: the event loop may be what does not respond.
            del frame
            now = trio.current_time()
            if not first:
                first.append((number, now))
                token.run_sync_soon(struck.set)
            elif now - first[0][1] > (ONCE if struck.is_set() else UNHEARD):
                self._exit_process()

        with _signal_handler(strike):
            task_status.started()
            await struck.wait()
            await trio.sleep(ONCE)  # a user who reads the message and presses again means it
            self.asked_by = signal.Signals(first[0][0]).name
            self._ask(self.asked_by)
            self._asked.set()
            await trio.sleep_forever()

    async def cancel_stuck_output(
        self, over: Callable[[], Awaitable[object]], printing: trio.CancelScope
    ) -> None:
        """After a signal, cancel output that its reader does not take once the work is over.

        `over` waits for the end of the work. Without a signal, output waits for its reader, as a
        pipe does.
        """
        await self._asked.wait()
        await over()
        await trio.sleep(READER_PATIENCE)
        printing.cancel()

    def final_output_scope(self) -> trio.CancelScope:
        """Return a scope for final output: after a signal, its time is limited."""
        patience = float("inf") if self.asked_by is None else READER_PATIENCE
        return trio.CancelScope(relative_deadline=patience)

    def _exit_process(self) -> None:
        with contextlib.suppress(OSError):
            # A terminal is busy while another thread writes to it, such as the progress display.
            if select.select([], [2], [], BUSY_FOR)[1]:
                os.write(2, self._last_words().encode(errors="replace"))
        os._exit(INTERRUPTED)


@contextlib.contextmanager
def _signal_handler(handler: Callable[[int, FrameType | None], None]) -> Generator[None]:
    """Install a handler for our signals, except those that the parent process ignores."""
    wanted = [each for each in _SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.signal(each, handler) for each in wanted}
    try:
        yield
    finally:
        for number, each in before.items():
            signal.signal(number, each)


def signal_label(signal_name: str) -> str:
    """Return the usual name of a signal."""
    return "Ctrl-C" if signal_name == "SIGINT" else signal_name
