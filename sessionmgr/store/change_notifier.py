"""Notifier of changes: wakes only those tasks that wait for a number that has been passed."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from trio.lowlevel import Abort, Task, current_task, reschedule, wait_task_rescheduled

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

ChangeKey: TypeAlias = tuple[str, str]
"""Key of a number that tasks wait for: its kind, and its id."""


class ChangeWaiter:
    """Waiter: one task that waits until `number` exceeds `after`."""

    __slots__ = ("_parked", "after", "key", "number")

    def __init__(self, key: ChangeKey, after: int) -> None:
        self.key = key
        self.after = after
        self.number = after
        self._parked: Task | None = None

    @property
    def has_passed(self) -> bool:
        """Whether the wait is over."""
        return self.number > self.after

    @property
    def is_waiting(self) -> bool:
        """Whether the task is parked."""
        return self._parked is not None

    def advance(self, number: int) -> None:
        """Record the present number."""
        if number > self.number:
            self.number = number
            self.wake()

    def wake(self) -> None:
        """Wake the task, if it is parked."""
        if self._parked is not None:
            reschedule(self._parked)
            self._parked = None

    async def wait(self) -> None:
        """Wait for the next notification or `wake`."""

        def abort(_: object) -> Abort:
            self._parked = None
            return Abort.SUCCEEDED

        self._parked = current_task()
        await wait_task_rescheduled(abort)


class ChangeNotifier:
    """Notifier that knows all waiters of a store by their keys."""

    def __init__(self) -> None:
        self._waiting: dict[ChangeKey, dict[ChangeWaiter, None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    @property
    def awaited_numbers(self) -> dict[ChangeKey, int]:
        """Keys that tasks wait for, each with the lowest number that must be exceeded."""
        return {
            key: min(waiter.after for waiter in waiters) for key, waiters in self._waiting.items()
        }

    def __iter__(self) -> Iterator[ChangeWaiter]:
        for waiters in self._waiting.values():
            yield from waiters

    def notify(self, key: ChangeKey, number: int) -> None:
        """Wake the tasks that wait for `key` to exceed a lower number."""
        for waiter in self._waiting.get(key, ()):
            waiter.advance(number)

    @contextmanager
    def subscribe(self, key: ChangeKey, after: int) -> Generator[ChangeWaiter]:
        """Register a waiter: it records each notification from now on, parked or not."""
        waiter = ChangeWaiter(key, after)
        self._waiting.setdefault(key, {})[waiter] = None
        try:
            yield waiter
        finally:
            waiters = self._waiting[key]
            del waiters[waiter]
            if not waiters:
                del self._waiting[key]

    async def wait(self, key: ChangeKey, after: int) -> int:
        """Wait until `key` exceeds `after`; return its number then."""
        with self.subscribe(key, after) as waiter:
            while not waiter.has_passed:
                await waiter.wait()
            return waiter.number
