"""A behaviour of stores that can be tested, named by a sentence."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TypeAlias

from sessionmgr.store import Store

OpenStore: TypeAlias = Callable[[], AbstractAsyncContextManager[Store]]
"""Opens a store for the length of a block."""


@dataclass(frozen=True, slots=True)
class StoreBehaviour:
    """A behaviour that can be tested on any store."""

    name: str
    run: Callable[[OpenStore], Awaitable[None]]

    async def __call__(self, open_store: OpenStore) -> None:
        """Test it.

        Raises:
            AssertionError: The store behaves otherwise.
        """
        await self.run(open_store)

    def __str__(self) -> str:
        return self.name


@dataclass(slots=True)
class StoreBehaviourGroup:
    """Behaviours of one subject, in their order."""

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
