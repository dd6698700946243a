"""Who waits for which number to be passed, and the bell that wakes them and nobody else."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from trio.lowlevel import Abort, Task, current_task, reschedule, wait_task_rescheduled

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

Key: TypeAlias = tuple[str, str]
"""What is waited for: its kind, and its id."""


class Waiter:
    """One task that waits for `number` to pass `after`."""

    __slots__ = ("_parked", "after", "key", "number")

    def __init__(self, key: Key, after: int) -> None:
        self.key = key
        self.after = after
        self.number = after
        self._parked: Task | None = None

    @property
    def passed(self) -> bool:
        """Say whether there is nothing left to wait for."""
        return self.number > self.after

    @property
    def parked(self) -> bool:
        """Say whether the task sleeps."""
        return self._parked is not None

    def ring(self, number: int) -> None:
        """Note how far things are."""
        if number > self.number:
            self.number = number
            self.nudge()

    def nudge(self) -> None:
        """Wake the task, if it is parked."""
        if self._parked is not None:
            reschedule(self._parked)
            self._parked = None

    async def park(self) -> None:
        """Sleep until the bell rings, or somebody nudges."""

        def abort(_: object) -> Abort:
            self._parked = None
            return Abort.SUCCEEDED

        self._parked = current_task()
        await wait_task_rescheduled(abort)


class Bells:
    """All who wait, by what they wait for."""

    def __init__(self) -> None:
        self._waiting: dict[Key, dict[Waiter, None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    @property
    def awaited(self) -> dict[Key, int]:
        """What is waited for by anybody, and the lowest number that is to be passed."""
        return {
            key: min(waiter.after for waiter in waiters) for key, waiters in self._waiting.items()
        }

    def __iter__(self) -> Iterator[Waiter]:
        for waiters in self._waiting.values():
            yield from waiters

    def ring(self, key: Key, number: int) -> None:
        """Wake those who wait for `key` to pass a lower number."""
        for waiter in self._waiting.get(key, ()):
            waiter.ring(number)

    @contextmanager
    def listen(self, key: Key, after: int) -> Generator[Waiter]:
        """Hear each ring from now on, parked or not."""
        waiter = Waiter(key, after)
        self._waiting.setdefault(key, {})[waiter] = None
        try:
            yield waiter
        finally:
            waiters = self._waiting[key]
            del waiters[waiter]
            if not waiters:
                del self._waiting[key]

    async def wait(self, key: Key, after: int) -> int:
        """Sleep until `key` passes `after`; return how far it is then."""
        with self.listen(key, after) as waiter:
            while not waiter.passed:
                await waiter.park()
            return waiter.number
