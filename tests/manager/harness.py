"""A manager with a scripted provider. The invariants are checked on its store when it closes."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import trio

from sessionmgr.adapter import Budget, ProviderAdapter
from sessionmgr.manager import Clocks, Cursor, Manager, RunHandle, open_manager
from sessionmgr.model import AnyEvent, RunResult
from sessionmgr.store import MemoryStore, Store
from sessionmgr.testing.invariants import broken_laws
from sessionmgr.testing.scripted_provider import (
    Script,
    ScriptedProvider,
    Step,
    scripted,
    write_script,
)


@dataclass
class ManagerHarness:
    manager: Manager
    store: Store
    actor: type[ScriptedProvider]

    async def result(self, *steps: Step) -> RunResult:
        session = await self.manager.open_session("actor")
        return await (await session.submit(run_scripted(*steps))).result()

    async def start(self, *steps: Step) -> RunHandle:
        session = await self.manager.open_session("actor")
        return await session.submit(run_scripted(*steps))

    def saw(self, what: str) -> list[str]:
        return [entry.text for entry in self.actor.log if entry.what == what]


def run_scripted(*steps: Step, **how: object) -> str:
    return write_script(Script(steps=steps, **how))  # type: ignore[arg-type]


def virtual_now() -> float:
    return 1_800_000_000 + trio.current_time()


async def stored(house: ManagerHarness, session_id: str) -> list[str]:
    page = await house.store.events(session_id)
    return [row.type for row in page.rows]


async def events(run: RunHandle) -> list[AnyEvent]:
    return [event async for event in run]


async def types(run: RunHandle) -> list[str]:
    return [event.type async for event in run]


async def collect(cursor: Cursor, into: list[AnyEvent]) -> None:
    while (event := await anext(cursor, None)) is not None:
        into.append(event)


@asynccontextmanager
async def open_harness(
    *,
    store: Store | None = None,
    actor: type[ScriptedProvider] | None = None,
    others: Mapping[str, type[ProviderAdapter]] | None = None,
    clocks: Clocks | None = None,
    budget: Budget | None = None,
    lawful: bool = True,
) -> AsyncGenerator[ManagerHarness, None]:
    store = MemoryStore() if store is None else store
    actor = scripted("actor") if actor is None else actor
    async with open_manager(
        store=store,
        adapters={"actor": actor, **(others or {})},
        clocks=clocks,
        budget=budget,
        now=virtual_now,
    ) as manager:
        yield ManagerHarness(manager, store, actor)
    if lawful:
        broken = await broken_laws(store)
        assert not broken, broken
