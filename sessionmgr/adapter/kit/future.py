"""Future: a value that arrives later, such as the reply to a request."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

import trio

T = TypeVar("T")


class Future(Generic[T]):
    """Value that is set once; tasks can wait for it."""

    def __init__(self) -> None:
        self._values: Final[list[T]] = []
        self._arrived: Final = trio.Event()

    def set(self, value: T) -> None:
        """Set the value and wake all waiting tasks; only the first call has an effect."""
        if not self._values:
            self._values.append(value)
            self._arrived.set()

    async def wait(self) -> T:
        """Wait for the value."""
        await self._arrived.wait()
        return self._values[0]
