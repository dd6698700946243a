"""Readers: they follow a run or a session at their own pace, and compare it with the record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from sessionmgr.model import TERMINAL_TYPES, encode_event
from sessionmgr.store import StoreError

if TYPE_CHECKING:
    from sessionmgr.manager import Manager, RunHandle
    from sessionmgr.manager.cursor import Cursor
    from sessionmgr.model import AnyEvent
    from tests.simulation.rng import SeededRandom
    from tests.simulation.world import ManagerRunNote, SimulatedWorld


class EventChecker:
    """Checks the events of a cursor: each once, in order, and none before it is stored."""

    def __init__(self, world: SimulatedWorld, session_id: str, name: str, after: int) -> None:
        self._world = world
        self._session_id = session_id
        self._name = name
        self.last = after
        self.seen: list[int] = []

    async def check(self, event: AnyEvent) -> None:
        """Check an event."""
        await trio.lowlevel.checkpoint()
        if event.seq <= self.last:
            self._world.add_violation(f"{self._name} sees number {event.seq} after {self.last}")
        if not await self._is_stored(event):
            self._world.add_violation(f"{self._name} sees number {event.seq}, which is not stored")
        self.last = event.seq
        self.seen.append(event.seq)

    async def _is_stored(self, event: AnyEvent) -> bool:
        body, seq = encode_event(event), event.seq
        if self._world.record.has(self._session_id, seq, body):
            return True
        # The event may be stored, and its writer not know it yet.
        page = await self._world.store.events(self._session_id, after=seq - 1, until=seq)
        return [row.body for row in page.rows] == [body]


async def read_along(
    world: SimulatedWorld,
    manager: Manager,
    lifetime: ManagerRunNote,
    run: RunHandle,
    rng: SeededRandom,
) -> None:
    """Read a run to its end, or its session for a while, from any position."""
    slow = rng.choice([0.0, 0.0, 0.05, 1.0])
    if rng.once_in(2):
        with trio.CancelScope() as scope:
            lifetime.readers.append(scope)
            await _read_run(world, lifetime, run, slow)
    else:
        await _read_session(world, manager, run, rng, slow)


async def _read_run(
    world: SimulatedWorld, lifetime: ManagerRunNote, run: RunHandle, slow: float
) -> None:
    checker = EventChecker(world, run.session_id, f"a reader of {run.id}", 0)
    last = ""
    try:
        async for event in run:
            await checker.check(event)
            last = event.type
            await trio.sleep(slow)
    except StoreError:
        now = trio.current_time()
        if not lifetime.faults.had_bad(now - 1, now):
            raise
        return
    # A manager died before it could store the end: read as far as the events are stored.
    unstored = lifetime.faults.had_bad(lifetime.closing_at - 60, lifetime.over_at)
    if last not in TERMINAL_TYPES and not unstored:
        world.add_violation(f"a reader of {run.id} comes to an end with {last!r}")
    _check_all(world, run, checker)


def _check_all(world: SimulatedWorld, run: RunHandle, checker: EventChecker) -> None:
    rows = world.record.sessions.get(run.session_id, [])
    stored = [each.row.seq for each in rows if each.row.run_id == run.id]
    wanted = [seq for seq in stored if seq <= checker.last]
    if checker.seen != wanted:
        world.add_violation(f"a reader of {run.id} saw {checker.seen}, and stored is {wanted}")


async def _read_session(
    world: SimulatedWorld, manager: Manager, run: RunHandle, rng: SeededRandom, slow: float
) -> None:
    stored = len(world.record.sessions.get(run.session_id, []))
    after = rng.choice([0, rng.randrange(stored + 1), stored])
    types = rng.choice([None, None, ["message_received", "run_completed", "run_started"]])
    only = rng.choice([None, None, run.id])
    cursor = manager.subscribe(run.session_id, after=after, run_id=only, types=types)
    checker = EventChecker(world, run.session_id, f"a subscriber of {run.session_id}", after)
    with trio.move_on_after(rng.random() * 40):
        await _follow(cursor, checker, slow)
    rows = world.record.sessions.get(run.session_id, [])
    wanted = [
        each.row.seq
        for each in rows
        if after < each.row.seq <= checker.last
        and (types is None or each.row.type in types)
        and only in (None, each.row.run_id)
    ]
    if checker.seen != wanted:
        world.add_violation(
            f"a subscriber of {run.session_id} saw {checker.seen} instead of {wanted}"
        )


async def _follow(cursor: Cursor, checker: EventChecker, slow: float) -> None:
    async for event in cursor:
        await checker.check(event)
        await trio.sleep(slow)
