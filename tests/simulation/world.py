"""Shared state of a simulation: its seed, store and providers, and observations of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import trio

from sessionmgr.adapter import RunContext
from sessionmgr.testing.scripted_provider import ProviderLogEntry, ScriptedProvider, scripted
from tests.simulation.rng import SeededRandom
from tests.simulation.store_record import StoreRecord
from tests.simulation.workload import Workload, make_workload

if TYPE_CHECKING:
    from sessionmgr.adapter import ApprovalRequest, Decision
    from sessionmgr.model import RunResult
    from sessionmgr.store import Store
    from sessionmgr.testing.script import Script
    from tests.simulation.store_faults import StoreFaults

SESSIONS: Final = 14
EPOCH: Final = 1_800_000_000
STEADY: Final = ("steady", "solid")
FRAIL: Final = "frail"
"""The one provider that scripts may crash."""


class SimulationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Size of a simulation; everything else follows from its seed."""

    seed: int
    sessions: int = SESSIONS
    lifetimes: int | None = None
    """Number of managers, one after the other."""


class RunNote:
    """Observations of one run by its caller."""

    def __init__(self, run_id: str, session_id: str, prompt: str, lifetime: ManagerRunNote) -> None:
        self.id: Final = run_id
        self.session_id: Final = session_id
        self.prompt: Final = prompt
        self.lifetime: Final = lifetime
        self.cancels: Final[list[float]] = []
        """Times of the cancels that were accepted as the reason for the end."""
        self.left = False
        """Whether the block was left early, or the start was not awaited."""
        self.paused = False
        self.budget = False
        self.result: RunResult | None = None


class ManagerRunNote:
    """Observations of one manager's lifetime."""

    def __init__(self, number: int, faults: StoreFaults) -> None:
        self.number: Final = number
        self.faults: Final = faults
        self.began: Final = trio.current_time()
        self.closing_at = float("inf")
        self.killed_at = float("inf")
        self.over_at = float("inf")
        self.readers: Final[list[trio.CancelScope]] = []
        """Readers that wait until the end of a run is stored."""


class SimulatedWorld:
    """Shared state of all managers."""

    def __init__(self, options: SimulationOptions, store: Store) -> None:
        self.options: Final = options
        self.seed: Final = options.seed
        self.store: Final = store
        self.record: Final = StoreRecord()
        self.complaints: Final[list[str]] = []
        self.runs: Final[dict[str, RunNote]] = {}
        self.lifetimes: Final[list[ManagerRunNote]] = []
        self.session_cancels: Final[dict[str, list[float]]] = {}
        self.pause_requests: Final[set[str]] = set()
        """Sessions with a run that another process has asked to pause."""
        self.all_cancels: Final[list[float]] = []
        self.limited: Final[set[str]] = set()
        """Sessions with a budget, regardless of their manager."""
        self.stops: Final[set[str]] = set()
        """Runs with a request that was denied with a stop."""
        self.refused: Final[set[str]] = set()
        """Prompts whose start was refused."""
        self.hasty: Final[set[str]] = set()
        """Prompts of runs whose start may not have been awaited."""
        self.follow_ups: Final[dict[str, str]] = {}
        """Contents of appended messages, and their outcome."""
        self.plays: Final[dict[str, list[str]]] = {}
        """What providers received, by content: as `prompt` or `append`."""
        self.overs: Final[dict[str, float]] = {}
        """End of each run on the provider's side."""
        self.ids: Final = SeededRandom(options.seed, "ids")
        self._pieces: Final[dict[str, Workload]] = {}
        self.adapters: Final = {name: self._provider(name) for name in (*STEADY, FRAIL)}

    def now(self) -> float:
        """Return the wall clock's time."""
        return EPOCH + trio.current_time()

    def bits(self, number: int) -> int:
        """Return random bits for ids."""
        return self.ids.getrandbits(number)

    def add_violation(self, what: str) -> None:
        """Record a violation."""
        self.complaints.append(f"at {trio.current_time():.3f}: {what}")

    def workload(self, name: str) -> Workload:
        """Return the workload of a prompt: always the same one."""
        if name not in self._pieces:
            frail = name.startswith(FRAIL)
            self._pieces[name] = make_workload(
                SeededRandom(self.seed, "piece", name), name, frail=frail
            )
        return self._pieces[name]

    def _provider(self, name: str) -> type[ScriptedProvider]:
        def script(prompt: str, attempt: int) -> Script:
            if attempt:
                self.add_violation(f"{prompt} is played again")
            return self.workload(prompt).script

        made = scripted(name, scripts=script)
        made.log = _CheckedLog(self)
        return _watched(made, self)


class _CheckedRunContext(RunContext):
    """Context of a run for its adapter; each answer is checked when it reaches the provider."""

    __slots__ = ("_world",)

    def __init__(self, run: RunContext, world: SimulatedWorld) -> None:
        for name in RunContext.__slots__:
            setattr(self, name, getattr(run, name))
        self._world = world

    async def ask(self, request: ApprovalRequest) -> Decision:
        decision = await super().ask(request)
        if request.approval_id not in self._world.record.answers:
            self._world.add_violation(
                f"the answer to {request.approval_id} came before it was stored"
            )
        return decision


def _watched(played: type[ScriptedProvider], world: SimulatedWorld) -> type[ScriptedProvider]:
    async def run(self: ScriptedProvider, run: RunContext) -> None:
        try:
            await played.run(self, _CheckedRunContext(run, world))
        finally:
            world.overs[run.run_id] = trio.current_time()

    made = type("Watched", (played,), {"run": run, "__doc__": played.__doc__})
    assert issubclass(made, ScriptedProvider)
    return made


class _CheckedLog(list[ProviderLogEntry]):
    """Log of a provider, compared with the record as it grows."""

    def __init__(self, world: SimulatedWorld) -> None:
        super().__init__()
        self._world = world

    def append(self, entry: ProviderLogEntry, /) -> None:
        world = self._world
        match entry.what:
            case "prompt":
                if entry.text not in world.record.sent:
                    world.add_violation(f"{entry.text} reached the provider before the store")
                world.plays.setdefault(entry.text, []).append("prompt")
            case "append":
                if entry.text not in world.record.queued:
                    world.add_violation(f"{entry.text} reached the turn before the store")
                world.plays.setdefault(entry.text, []).append("append")
            case _:
                pass
