"""A manager with a real Codex, whose only reachable host is the scripted model.

All traffic with its app-servers is recorded, and must be valid by Codex's own schema.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from sessionmgr.manager import Clocks, open_manager
from sessionmgr.process import open_launcher
from sessionmgr.process.capture import CaptureLauncher
from sessionmgr.store import MemoryStore, Store
from sessionmgr.testing.model_server import ModelServer
from sessionmgr_adapters.codex import CodexAdapter
from tests.real.codex.contract import contract_of, said_in
from tests.real.harness import CLOSE, PATIENCE, RealAgentHarness, nothing_is_left


@asynccontextmanager
async def open_house(
    server: ModelServer,
    program: Path,
    work: Path,
    env: dict[str, str],
    *,
    store: Store | Path | None = None,
    **clocks: float,
) -> AsyncGenerator[RealAgentHarness, None]:
    """Open a manager; at the end no process may remain, and all traffic must be valid."""
    store = MemoryStore() if store is None else store
    talk = work.parent / "talk"
    with trio.fail_after(PATIENCE):
        async with (
            open_launcher() as launcher,
            open_manager(
                store=store,
                adapters={"codex": CodexAdapter},
                launcher=CaptureLauncher(launcher, talk),
                environ=env,
                clocks=Clocks(**{"close": CLOSE, **clocks}),
            ) as manager,
        ):
            house = RealAgentHarness("codex", manager, server, program, work, env)
            yield house
    await nothing_is_left(house, store)
    contract = await contract_of(program)
    for name, entries in said_in(talk):
        faults = contract.faults(entries)
        assert faults == [], name
