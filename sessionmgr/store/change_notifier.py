"""Who waits for which number to be passed, and the bell that wakes them and nobody else."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from trio.lowlevel import Abort, Task, current_task, reschedule, wait_task_rescheduled

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

ChangeKey: TypeAlias = tuple[str, str]
"""What is waited for: its kind, and its id."""


class ChangeWaiter:
    """One task that waits for `number` to pass `after`."""

    __slots__ = ("_parked", "after", "key", "number")

    def __init__(self, key: ChangeKey, after: int) -> None:
        self.key = key
        self.after = after
        self.number = after
        self._parked: Task | None = None

    @property
    def has_passed(self) -> bool:
        """Say whether there is nothing left to wait for."""
        return self.number > self.after

    @property
    def is_waiting(self) -> bool:
        """Say whether the task sleeps."""
        return self._parked is not None

    def advance(self, number: int) -> None:
        """Note how far things are."""
        if number > self.number:
            self.number = number
            self.wake()

    def wake(self) -> None:
        """Wake the task, if it is parked."""
        if self._parked is not None:
            reschedule(self._parked)
            self._parked = None

    async def wait(self) -> None:
        """Sleep until the bell rings, or somebody nudges."""

        def abort(_: object) -> Abort:
            self._parked = None
            return Abort.SUCCEEDED

        self._parked = current_task()
        await wait_task_rescheduled(abort)


class ChangeNotifier:
    """All who wait, by what they wait for."""

    def __init__(self) -> None:
        self._waiting: dict[ChangeKey, dict[ChangeWaiter, None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    @property
    def awaited_numbers(self) -> dict[ChangeKey, int]:
        """What is waited for by anybody, and the lowest number that is to be passed."""
        return {
            key: min(waiter.after for waiter in waiters) for key, waiters in self._waiting.items()
        }

    def __iter__(self) -> Iterator[ChangeWaiter]:
        for waiters in self._waiting.values():
            yield from waiters

    def notify(self, key: ChangeKey, number: int) -> None:
        """Wake those who wait for `key` to pass a lower number."""
        for waiter in self._waiting.get(key, ()):
            waiter.advance(number)

    @contextmanager
    def subscribe(self, key: ChangeKey, after: int) -> Generator[ChangeWaiter]:
        """Hear each ring from now on, parked or not."""
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
        """Sleep until `key` passes `after`; return how far it is then."""
        with self.subscribe(key, after) as waiter:
            while not waiter.has_passed:
                await waiter.wait()
            return waiter.number
