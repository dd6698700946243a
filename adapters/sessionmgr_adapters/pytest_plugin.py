"""What pytest finds of the test kit: `sessionmgr.testing`, as fixtures.

pytest loads this in every project of an environment in which sessionmgr is installed. So it costs
nothing: it imports the library when a fixture is asked for, and lives here because to import
anything below `sessionmgr` is to import all of it.
"""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from sessionmgr.manager import Manager
    from sessionmgr.testing import Scripts
    from sessionmgr.testing.model_server import ModelServer, Scripts as Replies
    from sessionmgr.testing.player import Step

# So that what does not hold is shown with its values, as in a test of one's own.
for each in ("adapter_conformance", "mock_sdk", "store_conformance"):
    if f"sessionmgr.testing.{each}" not in sys.modules:  # then it is too late
        pytest.register_assert_rewrite(f"sessionmgr.testing.{each}")


@pytest.fixture
def sessionmgr_player(tmp_path: Path) -> Callable[[Sequence[Step]], tuple[str, ...]]:
    """Make the argv of a child that plays a playbook: `options={"command": argv}`."""
    from sessionmgr.testing.player import command_of

    numbers = iter(range(1_000_000))
    return lambda playbook: command_of(playbook, tmp_path / f"playbook-{next(numbers)}.json")


@pytest.fixture
def sessionmgr_scripted() -> Callable[..., AbstractAsyncContextManager[Manager]]:
    """Open a manager whose provider `scripted` plays scripts, in any clock.

    `async with sessionmgr_scripted({"fix it": (Say(text="done"),)}) as manager:`. When the block
    is left, what stands in the store must be a lawful record.
    """

    @asynccontextmanager
    async def open_scripted(scripts: Scripts | None = None) -> AsyncGenerator[Manager, None]:
        from sessionmgr.manager import open_manager
        from sessionmgr.store import MemoryStore
        from sessionmgr.testing import broken_laws, scripted

        store = MemoryStore()
        adapters = {"scripted": scripted("scripted", scripts=scripts)}
        async with open_manager(store=store, adapters=adapters) as manager:
            yield manager
        assert await broken_laws(store) == []

    return open_scripted


@pytest.fixture
def sessionmgr_model_server() -> Callable[..., AbstractAsyncContextManager[ModelServer]]:
    """Open a server on loopback that plays scripts as a model, for agents that are real.

    `async with sessionmgr_model_server() as server:`, and the agent is pointed at `server.url`, as
    its proxy, too. When the block is left, it must have been asked for nothing it does not know.
    """

    @asynccontextmanager
    async def open_server(scripts: Replies | None = None) -> AsyncGenerator[ModelServer, None]:
        from sessionmgr.testing.model_server import open_model_server

        async with open_model_server(scripts) as server:
            yield server
        assert server.log.strangers == []

    return open_server
