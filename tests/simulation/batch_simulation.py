"""Kills and reruns a batch in virtual time: no recorded tool call may happen twice."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import trio

from sessionmgr.batch import JobResult, run_batch
from sessionmgr.batch.job import Job
from sessionmgr.batch.restart import RetryFrom
from sessionmgr.manager import open_manager
from sessionmgr.model import NATIVE, Capabilities, FailureKind
from sessionmgr.store import MemoryStore
from sessionmgr.testing.invariants import broken_laws
from sessionmgr.testing.scripted_provider import (
    Crash,
    Fail,
    Hang,
    RateLimited,
    Say,
    Tool,
    Wait,
    scripted,
)
from tests.simulation.faulty_store import FaultInjectingStore
from tests.simulation.manager_run import mark_manager_dead
from tests.simulation.rng import SeededRandom
from tests.simulation.simulated_caller import CLOCKS
from tests.simulation.store_faults import StoreFaults
from tests.simulation.store_record import StoreRecord

if TYPE_CHECKING:
    from sessionmgr.batch import BatchOptions
    from sessionmgr.manager import Manager
    from sessionmgr.testing.scripted_provider import ScriptedProvider, Step
    from tests.simulation.world import SimulatedWorld

JOBS: Final = 5
AGENT: Final = "worker"
COMMAND: Final = "command"
"""A provider that cannot resume; its prompts are commands."""
PUSH: Final = "push"
SPAN: Final = 12.0
"""Seconds within which a batch is killed."""
KINDS: Final = (
    FailureKind.PROVIDER_ERROR,
    FailureKind.OVERLOADED,
    FailureKind.KILLED_BY_OS,
    FailureKind.SESSION_NOT_FOUND,
    FailureKind.CONTEXT_EXCEEDED,
)


class BatchSimulation:
    """One batch, continued by several managers."""

    def __init__(self, world: SimulatedWorld) -> None:
        self._world: Final = world
        self._rng: Final = SeededRandom(world.seed, "batch")
        self._store: Final = MemoryStore()
        self.record: Final = StoreRecord()
        self._results: Final[dict[str, JobResult]] = {}
        """The last result of each job."""
        policies = [(RetryFrom.SESSION, 3.0), (RetryFrom.ASK, 1.0)]
        self._policy: Final = self._rng.one_of(policies)
        self._retry_on: Final = KINDS if self._rng.once_in(2) else None

    async def run(self) -> None:
        """Run the batch, kill it several times, and check its work."""
        with tempfile.TemporaryDirectory(prefix="simulation-") as directory:
            place = Path(directory, "0")
            lives = self._rng.randrange(1, 5)
            for number in range(lives):
                place = await self._run_manager(place, number, is_last=number == lives - 1)
        await self._check()

    async def _run_manager(self, place: Path, number: int, *, is_last: bool) -> Path:
        """Run the batch for one manager's lifetime; return the ledger's path afterwards."""
        world = self._world
        faults = StoreFaults(SeededRandom(world.seed, "batch weather", number))
        manager = open_manager(
            store=FaultInjectingStore(self._store, faults, self.record),
            adapters={AGENT: self._agent(number), COMMAND: self._command(number)},
            clocks=CLOCKS,
            now=world.now,
            bits=world.bits,
            environ={},
        )
        left = Path(place.parent, str(number + 1))
        over = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._work, manager, place, over)
            if is_last:
                await over.wait()
                return place
            with trio.move_on_after(self._rng.random() * SPAN):
                await over.wait()
                return place
            # Only the files that a killed process has written survive.
            shutil.copytree(place, left, ignore=shutil.ignore_patterns("lock*"))
            faults.die()
            mark_manager_dead(manager)
            nursery.cancel_scope.cancel()
        return left

    async def _work(self, manager: Manager, place: Path, over: trio.Event) -> None:
        how: BatchOptions = {
            "concurrency": 3,
            "retry_from": self._policy.value,
            "retry_on": self._retry_on,
        }
        async with manager, run_batch(manager, self._jobs(), out=place, **how) as batch:
            async for result in batch:
                self._results[result.job] = result
        over.set()

    # --- the jobs ---------------------------------------------------------------------

    def _jobs(self) -> list[Job]:
        rng = SeededRandom(self._world.seed, "jobs")
        return [
            Job(
                id=f"job-{number}",
                prompt=f"job-{number}",
                provider=COMMAND if rng.once_in(4) else AGENT,
                cwd="/",
                deadline=rng.choice([None, 4.0, 30.0]),
            )
            for number in range(JOBS)
        ]

    def _agent(self, number: int) -> type[ScriptedProvider]:
        def script(prompt: str, attempt: int) -> tuple[Step, ...]:
            rng = SeededRandom(self._world.seed, "agent", number, prompt, attempt)
            if prompt.startswith("job-"):
                return (Wait(seconds=rng.moment(3)), *_push(prompt, rng), *_end(rng))
            return (Say(text="going on"), Wait(seconds=rng.moment(3)), *_end(rng))

        return scripted(AGENT, scripts=script)

    def _command(self, number: int) -> type[ScriptedProvider]:
        def script(prompt: str, attempt: int) -> tuple[Step, ...]:
            rng = SeededRandom(self._world.seed, "command", number, prompt, attempt)
            return (*_push(prompt, rng), *_end(rng))

        only = Capabilities(streaming=NATIVE, tool_use=NATIVE, interrupt=NATIVE)
        made = scripted(COMMAND, scripts=script, capabilities=only)
        made.runs_commands = True
        return made

    # --- the checks -------------------------------------------------------------------------

    async def _check(self) -> None:
        complain = self._world.add_violation
        for broken in await broken_laws(self._store):
            complain(f"in the batch: {broken}")
        pushes = self._pushes()
        for name, number in pushes.items():
            if number > 1:
                complain(f"{name} has pushed {number} times without a decision")
        for job in self._jobs():
            result = self._results.get(job.id)
            if result is None:
                complain(f"{job.id} has no result")
            elif result.side_effects != (job.id in pushes):
                complain(f"{job.id}: side_effects is {result.side_effects}: {pushes}")
        if self._policy is RetryFrom.ASK:
            for run_id in self._resumed_after_calls():
                complain(f"{run_id} resumed a run with tool calls without a decision")

    def _pushes(self) -> dict[str, int]:
        """Count the recorded tool calls by job."""
        found: dict[str, int] = {}
        for rows in self.record.sessions.values():
            for noted in rows:
                if noted.row.type == "tool_call_started":
                    said = msgspec.json.decode(noted.row.body, type=_Call)
                    found[said.tool_input] = found.get(said.tool_input, 0) + 1
        return found

    def _resumed_after_calls(self) -> list[str]:
        """Return the runs that have resumed one with recorded tool calls."""
        rows = [noted.row for each in self.record.sessions.values() for noted in each]
        with_calls = {row.run_id for row in rows if row.type == "tool_call_started"}
        return [
            row.run_id
            for row in rows
            if row.type == "run_started" and row.run_id is not None
            if msgspec.json.decode(row.body, type=_Start).resumed_from in with_calls
        ]


class _Call(msgspec.Struct, frozen=True):
    tool_input: str


class _Start(msgspec.Struct, frozen=True):
    resumed_from: str | None = None


def _push(job: str, rng: SeededRandom) -> tuple[Step, ...]:
    if rng.once_in(5):
        return ()
    return (Tool(name=PUSH, input=job, takes=rng.moment(8)),)


def _end(rng: SeededRandom) -> tuple[Step, ...]:
    match rng.randrange(8):
        case 0:
            return (Crash(),)
        case 1:
            return (Hang(),)
        case 2:
            return (RateLimited(),)
        case 3 | 4:
            yes = rng.once_in(2)
            return (Fail(kind=rng.choice(KINDS), retryable=rng.once_in(2), resumable=yes),)
        case _:
            return (Say(text="done"),)
