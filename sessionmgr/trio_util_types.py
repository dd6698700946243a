"""Typed access to the part of trio-util that is used here: the package itself has no types.

`AsyncValue` and `RepeatedEvent` are too heavy for objects that exist by the thousand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, cast

import trio_util  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    import trio

T = TypeVar("T")


class _AsyncValueProtocol(Protocol[T]):
    value: T

    async def wait_value(self, predicate: Callable[[T], bool]) -> T: ...


class _RepeatedEventProtocol(Protocol):
    def set(self) -> None: ...

    async def wait(self) -> None: ...


class AsyncValue(Generic[T]):
    """A value that tasks can wait for."""

    __slots__ = ("_within",)

    def __init__(self, value: T) -> None:
        self._within = cast("_AsyncValueProtocol[T]", trio_util.AsyncValue(value))

    @property
    def value(self) -> T:
        """The present value."""
        return self._within.value

    @value.setter
    def value(self, value: T) -> None:
        self._within.value = value

    async def wait(self, holds: Callable[[T], bool]) -> T:
        """Wait until `holds` is true of the value, and return that value."""
        return await self._within.wait_value(holds)


class RepeatedEvent:
    """An event that occurs repeatedly: a waiter waits for the next occurrence."""

    __slots__ = ("_within",)

    def __init__(self) -> None:
        self._within = cast("_RepeatedEventProtocol", trio_util.RepeatedEvent())

    def set(self) -> None:
        """Wake all waiters."""
        self._within.set()

    async def wait(self) -> None:
        """Wait for the next occurrence."""
        await self._within.wait()


def move_on_when(
    wait: Callable[[], Awaitable[object]],
) -> AbstractAsyncContextManager[trio.CancelScope, bool]:
    """Cancel a block as soon as `wait` returns; exceptions of either leave in a group."""
    return cast(
        "AbstractAsyncContextManager[trio.CancelScope, bool]",
        trio_util.move_on_when(wait),  # pyright: ignore[reportUnknownMemberType]
    )
