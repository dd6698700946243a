"""One thing that every store does, by the name of a sentence."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TypeAlias

from sessionmgr.store import Store

OpenStore: TypeAlias = Callable[[], AbstractAsyncContextManager[Store]]
"""Opens a store for as long as a block lasts."""


@dataclass(frozen=True, slots=True)
class StoreBehaviour:
    """A behaviour that can be tried on any store."""

    name: str
    run: Callable[[OpenStore], Awaitable[None]]

    async def __call__(self, open_store: OpenStore) -> None:
        """Try it.

        Raises:
            AssertionError: The store does otherwise.
        """
        await self.run(open_store)

    def __str__(self) -> str:
        return self.name


@dataclass(slots=True)
class StoreBehaviourGroup:
    """Behaviours that belong together, in their order."""

    behaviours: list[StoreBehaviour] = field(default_factory=list[StoreBehaviour])

    def of_one_store(
        self, run: Callable[[Store], Awaitable[None]]
    ) -> Callable[[Store], Awaitable[None]]:
        """Add a behaviour of one open store."""

        async def opened(open_store: OpenStore) -> None:
            async with open_store() as store:
                await run(store)

        self.behaviours.append(StoreBehaviour(run.__name__, opened))
        return run

    def of_openings(
        self, run: Callable[[OpenStore], Awaitable[None]]
    ) -> Callable[[OpenStore], Awaitable[None]]:
        """Add a behaviour of a store that is opened more than once."""
        self.behaviours.append(StoreBehaviour(run.__name__, run))
        return run
