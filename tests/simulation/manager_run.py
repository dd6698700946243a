"""Lifetime of one manager, with its callers, its faults, and one of several ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import trio

from sessionmgr.errors import SessionmgrError
from sessionmgr.manager import open_manager
from sessionmgr.trio_util_types import RepeatedEvent
from tests.simulation.faulty_store import FaultInjectingStore
from tests.simulation.rng import SeededRandom
from tests.simulation.simulated_caller import CLOCKS, SPAN, CallerError, SimulatedCaller
from tests.simulation.store_faults import Kind, StoreFaults
from tests.simulation.world import ManagerRunNote

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessionmgr.manager import Manager
    from tests.simulation.world import SimulatedWorld

End: TypeAlias = Literal["calm", "hasty", "error", "cancel", "killed", "zombie"]
LIMIT: Final = 2500.0
"""Seconds after which callers that still wait after a calm end count as stuck."""


class ManagerRun:
    """One manager on the world's store."""

    def __init__(self, world: SimulatedWorld, number: int, callers: int, *, last: bool) -> None:
        self._world: Final = world
        self._rng: Final = SeededRandom(world.seed, "shift", number)
        self._number: Final = number
        self._callers: Final = callers
        self._faults: Final = StoreFaults(SeededRandom(world.seed, "weather", number))
        self._note: Final = ManagerRunNote(number, self._faults)
        ends: list[tuple[End, float]] = [("calm", 3), ("hasty", 2), ("error", 1), ("cancel", 1)]
        if not last:
            ends.append(("killed", 2))
            ends.append(("zombie", 1))
        self._end: Final = self._rng.one_of(ends)
        self._alive: Final[dict[SimulatedCaller, trio.CancelScope]] = {}
        self._left: Final = RepeatedEvent()
        world.lifetimes.append(self._note)

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Run the manager to its end; `started` when the next manager may start."""
        async with trio.open_nursery() as crowd:
            await self._run_manager(crowd, task_status.started)
            if self._note.killed_at == float("inf"):
                await self._wait_for_callers()
                task_status.started()
            crowd.cancel_scope.cancel()

    async def _run_manager(self, crowd: trio.Nursery, make_way: Callable[[], None]) -> None:
        outer = trio.CancelScope()
        try:
            with outer:
                async with self._manager() as manager:
                    self._start_callers(manager, crowd)
                    await self._body(manager, outer, make_way)
        except CallerError:
            if self._end != "error":
                self._world.add_violation("the manager's block raises Oops without a cause")
        except SessionmgrError as error:
            if not self._faults.periods:
                self._world.add_violation(f"the manager's block raises {error!r}")
        self._note.over_at = trio.current_time()
        if not self._faults.had_bad(self._note.closing_at - 60, self._note.over_at):
            await self._require_ends()

    async def _require_ends(self) -> None:
        """I1: when a manager has stopped, all its runs have ended."""
        open_runs = await self._world.store.runs(statuses=("pending", "running"), limit=1000)
        for run in open_runs.rows:
            known = self._world.runs.get(run.run_id)
            if known is not None and known.lifetime is self._note:
                self._world.add_violation(
                    f"the manager has ended, and {run.run_id} is {run.status}"
                )

    def _manager(self) -> Manager:
        world = self._world
        store = FaultInjectingStore(world.store, self._faults, world.record)
        return open_manager(
            store=store,
            adapters=world.adapters,
            clocks=CLOCKS,
            now=world.now,
            bits=world.bits,
            environ={},
        )

    def _start_callers(self, manager: Manager, crowd: trio.Nursery) -> None:
        callers = [
            SimulatedCaller(self._world, self._note, manager, n) for n in range(self._callers)
        ]
        for caller in callers:
            self._alive[caller] = trio.CancelScope()
            crowd.start_soon(self._follow, caller)
        crowd.start_soon(self._inject_faults, callers)

    async def _all_gone(self) -> None:
        """Wait until all callers have ended."""
        while self._alive:
            await self._left.wait()
        await trio.lowlevel.checkpoint()

    async def _follow(self, caller: SimulatedCaller) -> None:
        with self._alive[caller]:
            await caller.run()
        del self._alive[caller]
        self._left.set()

    async def _body(
        self,
        manager: Manager,
        outer: trio.CancelScope,
        make_way: Callable[[], None],
    ) -> None:
        if self._end == "calm":
            with trio.move_on_after(LIMIT):
                await self._all_gone()
            for caller in self._alive:
                self._world.add_violation(f"{caller.name} still does this: {caller.doing}")
            self._close()
            return
        await trio.sleep(self._rng.random() * 1.5 * SPAN)
        match self._end:
            case "error":
                self._close()
                raise CallerError
            case "cancel":
                self._close()
                outer.cancel()
                await trio.sleep_forever()
            case "killed" | "zombie":
                await self._die(manager, make_way)
            case _:
                self._close()

    def _close(self) -> None:
        self._note.closing_at = trio.current_time()

    async def _die(self, manager: Manager, make_way: Callable[[], None]) -> None:
        """Die as far as others can tell; a zombie was only suspended, and continues."""
        self._note.killed_at = self._note.closing_at = trio.current_time()
        self._faults.die()
        for scope in self._alive.values():
            scope.cancel()
        if self._end == "killed":
            mark_manager_dead(manager)
        make_way()
        if self._end == "zombie":
            await trio.sleep(self._rng.random() * 200)
            self._faults.revive()
            await trio.sleep(self._rng.random() * 30)
        await trio.lowlevel.checkpoint()

    async def _inject_faults(self, callers: list[SimulatedCaller]) -> None:
        """Inject some faults."""
        rng = self._rng
        for _ in range(rng.randrange(4)):
            await trio.sleep(rng.random() * SPAN / 2)
            if rng.once_in(3):
                doomed = [each.session_id for each in callers if each.session_id]
                if doomed:
                    when: Literal["before", "after"] = rng.choice(["before", "after"])
                    self._faults.fail_next_append(rng.choice(doomed), when)
                continue
            kinds: list[tuple[Kind, float]] = [
                ("slow", 2),
                ("frozen", 3),
                ("closed", 2),
                ("busy", 1),
                ("deaf", 2),
            ]
            longest = rng.choice([1.0, 5.0, 15.0, 40.0, 200.0, 600.0])
            await self._faults.during(rng.one_of(kinds), rng.random() * longest)

    async def _wait_for_callers(self) -> None:
        """Check that the callers of a dead manager end."""
        note = self._note
        with trio.move_on_after(LIMIT):
            await self._all_gone()
        if self._faults.had_bad(note.closing_at, note.over_at):
            # The next manager stores the ends that could not be stored; until then, readers wait.
            for reader in note.readers:
                reader.cancel()
            with trio.move_on_after(LIMIT):
                await self._all_gone()
        for caller, scope in self._alive.items():
            self._world.add_violation(
                f"{caller.name} still acts after its manager has ended: {caller.doing}"
            )
            scope.cancel()


def mark_manager_dead(manager: Manager) -> None:
    """Make others consider a manager dead, although its tasks still exist."""
    # A killed process cannot announce its death, so a manager has no public method for this.
    getattr(manager, "_state").presence.unregister()  # noqa: B009
