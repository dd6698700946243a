"""A manager with a scripted provider, and batches on it, in virtual time."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random

import trio

from sessionmgr import Job, Manager, open_manager
from sessionmgr.adapter import ProviderAdapter
from sessionmgr.batch import Batch, JobResult
from sessionmgr.store import MemoryStore, Store
from sessionmgr.testing.invariants import broken_laws
from sessionmgr.testing.scripted_provider import (
    Script,
    ScriptedProvider,
    Scripts,
    Step,
    scripted,
    write_script,
)


@dataclass
class BatchSetup:
    manager: Manager
    store: Store
    actor: type[ScriptedProvider]

    def prompts(self) -> list[str]:
        """Prompts that the provider received, in order."""
        return [entry.text for entry in self.actor.log if entry.what == "prompt"]

    def times(self) -> list[float]:
        """Times of these prompts."""
        return [entry.at for entry in self.actor.log if entry.what == "prompt"]


def virtual_now() -> float:
    return 1_800_000_000 + trio.current_time()


def job(id: str, *steps: Step, provider: str = "actor", **fields: object) -> Job:
    if steps:
        fields["prompt"] = write_script(Script(steps=steps))
    fields.setdefault("prompt", id)
    return Job(id=id, provider=provider, **fields)  # type: ignore[arg-type]


async def collect(batch: Batch) -> list[JobResult]:
    async with batch as results:
        return [result async for result in results]


async def results_of(batch: Batch) -> dict[str, str]:
    return {result.job: result.status.value for result in await collect(batch)}


@asynccontextmanager
async def open_batch_setup(
    *,
    store: Store | None = None,
    scripts: Scripts | None = None,
    others: Mapping[str, type[ProviderAdapter]] | None = None,
    seed: int = 0,
    lawful: bool = True,
) -> AsyncGenerator[BatchSetup, None]:
    store = MemoryStore() if store is None else store
    actor = scripted("actor", scripts=scripts)
    async with open_manager(
        store=store,
        adapters={"actor": actor, **(others or {})},
        now=virtual_now,
        bits=Random(seed).getrandbits,
    ) as manager:
        yield BatchSetup(manager, store, actor)
    if lawful:
        broken = await broken_laws(store)
        assert not broken, broken
