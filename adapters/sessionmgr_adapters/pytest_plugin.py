"""pytest plugin: provides `sessionmgr.testing` as fixtures.

pytest loads this module in every project of an environment in which sessionmgr is installed. So it
imports the library only when a fixture is used; and it is outside of `sessionmgr`, because
importing a submodule of that package imports all of it.
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

# Failed assertions of these modules show their values, like those of the user's own tests.
for each in ("adapter_conformance", "mock_sdk", "store_conformance"):
    if f"sessionmgr.testing.{each}" not in sys.modules:  # else it is too late
        pytest.register_assert_rewrite(f"sessionmgr.testing.{each}")


@pytest.fixture
def sessionmgr_player(tmp_path: Path) -> Callable[[Sequence[Step]], tuple[str, ...]]:
    """Return a function that makes the argv of a child that plays a playbook.

    Use it as `options={"command": argv}`.
    """
    from sessionmgr.testing.player import command_of

    numbers = iter(range(1_000_000))
    return lambda playbook: command_of(playbook, tmp_path / f"playbook-{next(numbers)}.json")


@pytest.fixture
def sessionmgr_scripted() -> Callable[..., AbstractAsyncContextManager[Manager]]:
    """Open a manager whose provider `scripted` plays scripts, with any clock.

    `async with sessionmgr_scripted({"fix it": (Say(text="done"),)}) as manager:`. At the end of the
    block, the fixture checks that the stored record breaks no invariant.
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
    """Open a server on loopback that plays scripts as a model, for real agents.

    `async with sessionmgr_model_server() as server:`. Point the agent at `server.url`, also as its
    proxy. At the end of the block, the fixture checks that the server received only known requests.
    """

    @asynccontextmanager
    async def open_server(scripts: Replies | None = None) -> AsyncGenerator[ModelServer, None]:
        from sessionmgr.testing.model_server import open_model_server

        async with open_model_server(scripts) as server:
            yield server
        assert server.log.strangers == []

    return open_server
