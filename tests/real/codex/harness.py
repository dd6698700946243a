"""A manager with a real Codex in it, which knows a scripted model and nobody else.

All that is said between us and its app-servers is kept, and is as Codex's own schema has it.
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
    """Open a manager; when it is left, nothing of it lives, and all was said as agreed."""
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
