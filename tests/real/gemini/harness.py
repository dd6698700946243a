"""A manager with a real Gemini CLI, which can reach a scripted model only."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from sessionmgr.adapter import ProviderAdapter
from sessionmgr.manager import Clocks, open_manager
from sessionmgr.store import MemoryStore, Store
from sessionmgr.testing.model_server import ModelServer
from sessionmgr_adapters.gemini.headless import GeminiHeadlessAdapter
from tests.real.harness import CLOSE, PATIENCE, RealAgentHarness, nothing_is_left


@asynccontextmanager
async def open_house(
    server: ModelServer,
    program: Path,
    work: Path,
    env: dict[str, str],
    adapter: type[ProviderAdapter] = GeminiHeadlessAdapter,
    *,
    store: Store | Path | None = None,
    **clocks: float,
) -> AsyncGenerator[RealAgentHarness, None]:
    """Open a manager; at the end its record must be lawful, and no process may be left."""
    store = MemoryStore() if store is None else store
    with trio.fail_after(PATIENCE):
        async with open_manager(
            store=store,
            adapters={"gemini": adapter},
            environ=env,
            clocks=Clocks(**{"close": CLOSE, **clocks}),
        ) as manager:
            house = RealAgentHarness("gemini", manager, server, program, work, env)
            yield house
    await nothing_is_left(house, store)
