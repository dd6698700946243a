"""A shift: the time of one manager, with its callers, its faults, and one of several ends."""

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
"""Seconds after which callers of a shift that ends calmly are asked what they wait for."""


class ManagerRun:
    """One manager on the world's store."""

    def __init__(self, world: SimulatedWorld, number: int, callers: int, *, last: bool) -> None:
        self._world: Final = world
        self._dice: Final = SeededRandom(world.seed, "shift", number)
        self._number: Final = number
        self._callers: Final = callers
        self._weather: Final = StoreFaults(SeededRandom(world.seed, "weather", number))
        self._note: Final = ManagerRunNote(number, self._weather)
        ends: list[tuple[End, float]] = [("calm", 3), ("hasty", 2), ("error", 1), ("cancel", 1)]
        if not last:
            ends.append(("killed", 2))
            ends.append(("zombie", 1))
        self._end: Final = self._dice.one_of(ends)
        self._alive: Final[dict[SimulatedCaller, trio.CancelScope]] = {}
        self._left: Final = RepeatedEvent()
        world.shifts.append(self._note)

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Be there until the manager is gone; `started` when the next one may come."""
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
                self._world.add_violation("the manager's block raises Oops from nowhere")
        except SessionmgrError as error:
            if not self._weather.bad:
                self._world.add_violation(f"the manager's block raises {error!r}")
        self._note.over_at = trio.current_time()
        if not self._weather.had_bad(self._note.closing_at - 60, self._note.over_at):
            await self._require_ends()

    async def _require_ends(self) -> None:
        """I1: whoever stops a manager finds that all its runs have ended."""
        open_runs = await self._world.store.runs(statuses=("pending", "running"), limit=1000)
        for run in open_runs.rows:
            known = self._world.runs.get(run.run_id)
            if known is not None and known.shift is self._note:
                self._world.add_violation(f"the manager is gone, and {run.run_id} is {run.status}")

    def _manager(self) -> Manager:
        world = self._world
        store = FaultInjectingStore(world.store, self._weather, world.record)
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
        """Wait until all callers have gone."""
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
        await trio.sleep(self._dice.random() * 1.5 * SPAN)
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
        """Be killed as far as others can tell; a zombie was only stopped, and goes on."""
        self._note.killed_at = self._note.closing_at = trio.current_time()
        self._weather.die()
        for scope in self._alive.values():
            scope.cancel()
        if self._end == "killed":
            mark_manager_dead(manager)
        make_way()
        if self._end == "zombie":
            await trio.sleep(self._dice.random() * 200)
            self._weather.revive()
            await trio.sleep(self._dice.random() * 30)
        await trio.lowlevel.checkpoint()

    async def _inject_faults(self, callers: list[SimulatedCaller]) -> None:
        """Have some bad weather."""
        dice = self._dice
        for _ in range(dice.randrange(4)):
            await trio.sleep(dice.random() * SPAN / 2)
            if dice.once_in(3):
                doomed = [each.session_id for each in callers if each.session_id]
                if doomed:
                    when: Literal["before", "after"] = dice.choice(["before", "after"])
                    self._weather.fail_next_append(dice.choice(doomed), when)
                continue
            kinds: list[tuple[Kind, float]] = [
                ("slow", 2),
                ("frozen", 3),
                ("closed", 2),
                ("busy", 1),
                ("deaf", 2),
            ]
            longest = dice.choice([1.0, 5.0, 15.0, 40.0, 200.0, 600.0])
            await self._weather.during(dice.one_of(kinds), dice.random() * longest)

    async def _wait_for_callers(self) -> None:
        """See that callers whose manager has gone come to an end."""
        note = self._note
        with trio.move_on_after(LIMIT):
            await self._all_gone()
        if self._weather.had_bad(note.closing_at, note.over_at):
            # What could not be stored will be, by the next manager: until then there is no end.
            for reader in note.readers:
                reader.cancel()
            with trio.move_on_after(LIMIT):
                await self._all_gone()
        for caller, scope in self._alive.items():
            self._world.add_violation(
                f"{caller.name}, whose manager has gone, does: {caller.doing}"
            )
            scope.cancel()


def mark_manager_dead(manager: Manager) -> None:
    """Have others take a manager for dead, although its tasks are still there."""
    # A process that is killed says nothing, and so a manager has nothing public for this.
    getattr(manager, "_state").presence.unregister()  # noqa: B009
