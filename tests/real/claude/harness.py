"""A manager with a real Claude Code, which can reach a scripted model only."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import trio

from sessionmgr.manager import Clocks, open_manager
from sessionmgr.store import MemoryStore, Store
from sessionmgr.testing.mock_sdk import connecting_by
from sessionmgr.testing.model_server import ModelServer
from sessionmgr_adapters.claude import ClaudeAdapter
from sessionmgr_adapters.claude.launch import ClaudeSpec
from sessionmgr_adapters.claude.sdk import ClaudeConnection, connect_claude
from tests.real.harness import (
    CLOSE as CLOSE,
    PATIENCE as PATIENCE,
    PlayedRun as PlayedRun,
    RealAgentHarness as RealAgentHarness,
    allow as allow,
    is_kept as is_kept,
    line_of as line_of,
    living as living,
    nothing_is_left,
    parent_of as parent_of,
    programs_of as programs_of,
    see as see,
    until as until,
    until_event as until_event,
    with_word as with_word,
)


def hermetic(env: dict[str, str]) -> type[ClaudeAdapter]:
    """Return the adapter, whose processes get this environment instead of ours."""

    @asynccontextmanager
    async def connected(spec: ClaudeSpec) -> AsyncGenerator[ClaudeConnection, None]:
        said = {k: v for k, v in spec.command.env.items() if k.startswith("CLAUDE_CODE_")}
        command = msgspec.structs.replace(spec.command, env={**said, **env})
        async with connect_claude(msgspec.structs.replace(spec, command=command)) as connection:
            yield connection

    return connecting_by(connected, ClaudeAdapter)


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
    """Open a manager; at the end its record must be lawful, and no process may be left."""
    store = MemoryStore() if store is None else store
    with trio.fail_after(PATIENCE):
        async with open_manager(
            store=store,
            adapters={"claude": ClaudeAdapter},
            environ=env,
            clocks=Clocks(**{"close": CLOSE, **clocks}),
        ) as manager:
            house = RealAgentHarness("claude", manager, server, program, work, env)
            yield house
    await nothing_is_left(house, store)
