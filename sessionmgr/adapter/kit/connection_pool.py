"""Connections that outlive a run: leased by runs, kept while they are idle, and not for ever.

A connection is a child of the provider's own supervisor, so it dies with its branch and not with
a run. The pool does not limit how many there are; it limits how many are kept for nobody. What a
run leaves in an unknown state is never leased again: a lease that is left by an exception, or is
abandoned, takes its conversation out of use. Then the connection takes no new ones, and is closed
when the last is over or at a deadline, so that one deaf conversation does not cost its neighbours.
"""

from __future__ import annotations

import math
from contextlib import asynccontextmanager
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import trio

from sessionmgr.adapter.connections import Keyed, Living
from sessionmgr.errors import StartFailed
from sessionmgr.otp import child
from sessionmgr.waiting import move_on_when

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Hashable

    from sessionmgr.adapter.connections import Connect
    from sessionmgr.otp import DynamicSupervisor

C = TypeVar("C", bound=Living)
Spec = TypeVar("Spec", bound=Keyed)

KEEP: Final = 5
IDLE_FOR: Final = 300.0
ABANDONED_FOR: Final = 600.0


class State(Enum):
    """What a connection does."""

    BUSY = auto()
    IDLE = auto()
    DEAD = auto()


class Step(Enum):
    """What happens to one."""

    LEASED = auto()
    LAST_RETURNED = auto()
    LOST = auto()


TRANSITIONS: Final[dict[State, dict[Step, State]]] = {
    State.BUSY: {
        Step.LEASED: State.BUSY,
        Step.LAST_RETURNED: State.IDLE,
        Step.LOST: State.DEAD,
    },
    State.IDLE: {Step.LEASED: State.BUSY, Step.LOST: State.DEAD},
    State.DEAD: {Step.LAST_RETURNED: State.DEAD, Step.LOST: State.DEAD},
}


class Held(Generic[Spec, C]):
    """One connection of a pool."""

    def __init__(self, spec: Spec) -> None:
        self.spec: Final = spec
        self.connection: C | None = None
        self.state = State.BUSY
        self.leases = 0
        self.abandoned = False
        """Whether a conversation on it was left in an unknown state."""
        self.ready = trio.Event()
        """Set when it is connected, or has failed to."""
        self.used = 0
        self._until = math.inf
        self._changed = trio.Event()

    def step(self, step: Step) -> None:
        """Go on to another state."""
        self.state = TRANSITIONS[self.state][step]

    def live_until(self, deadline: float) -> None:
        """Have it closed then, unless that is changed."""
        self._until = deadline
        self._changed.set()

    async def end_of_life(self) -> None:
        """Wait until it is to be closed."""
        await trio.lowlevel.checkpoint()
        while trio.current_time() < self._until:
            self._changed = trio.Event()
            with trio.move_on_at(self._until):
                await self._changed.wait()


class Lease(Generic[C]):
    """A connection for the length of a block."""

    def __init__(self, connection: C) -> None:
        self.connection: Final = connection
        self.is_abandoned = False

    def abandon(self) -> None:
        """Say that the conversation is deaf, or in a state that nobody knows."""
        self.is_abandoned = True


class ConnectionPool(Generic[Spec, C]):
    """Connections of one provider; each serves up to `seats` leases at once."""

    def __init__(
        self,
        connect: Connect[Spec, C],
        *,
        seats: int = 1,
        keep: int = KEEP,
        idle_for: float = IDLE_FOR,
        abandoned_for: float = ABANDONED_FOR,
    ) -> None:
        self._connect: Final = connect
        self._seats: Final = seats
        self._keep: Final = keep
        self._idle_for: Final = idle_for
        self._abandoned_for: Final = abandoned_for
        self._all: Final[list[Held[Spec, C]]] = []
        self._uses = 0

    def states(self) -> list[State]:
        """Return what each connection does, the least recently used first."""
        return [held.state for held in sorted(self._all, key=lambda held: held.used)]

    def retire(self, key: Hashable) -> None:
        """Close that key's idle connections now, and its busy ones when they are returned."""
        for held in [each for each in self._all if each.spec.key == key]:
            if held.state is State.IDLE:
                self._lose(held)
                held.live_until(trio.current_time())
            else:
                held.abandoned = True

    @asynccontextmanager
    async def lease(self, spec: Spec, owner: DynamicSupervisor) -> AsyncGenerator[Lease[C], None]:
        """Use a connection, an idle one if there is one; a new one is a child of `owner`.

        Raises:
            Exception: It could not be connected; what `connect` raises.
        """
        held = await self._take(spec, owner)
        assert held.connection is not None
        lease = Lease(held.connection)
        try:
            yield lease
        except BaseException:
            lease.abandon()
            raise
        finally:
            self._give_back(held, abandoned=lease.is_abandoned)

    async def _take(self, spec: Spec, owner: DynamicSupervisor) -> Held[Spec, C]:
        while True:
            held = self._find(spec)
            is_new = held is None
            if held is None:
                held = Held[Spec, C](spec)
                self._all.append(held)
            self._uses += 1
            held.used = self._uses
            held.leases += 1
            held.step(Step.LEASED)
            held.live_until(math.inf)
            try:
                if is_new:
                    await self._start(held, owner)
                await held.ready.wait()
            except BaseException:
                self._give_back(held, abandoned=False)
                raise
            if held.connection is not None and held.state is not State.DEAD:
                return held
            self._give_back(held, abandoned=False)

    def _find(self, spec: Spec) -> Held[Spec, C] | None:
        """Return the connection to use: of several, the one that was used last."""
        fitting = [
            held
            for held in self._all
            if held.state is not State.DEAD
            and not held.abandoned
            and held.leases < self._seats
            and held.spec.key == spec.key
        ]
        return max(fitting, key=lambda held: held.used, default=None)

    async def _start(self, held: Held[Spec, C], owner: DynamicSupervisor) -> None:
        try:
            await owner.start_child(child(self._hold, held, restart="temporary"))
        except StartFailed as error:
            raise error.__cause__ or error from None
        finally:
            if held.connection is None:
                self._lose(held)
            held.ready.set()

    async def _hold(self, held: Held[Spec, C], *, task_status: trio.TaskStatus[None]) -> None:
        """Be the child that owns a connection."""
        try:
            async with self._connect(held.spec) as connection:
                held.connection = connection
                task_status.started()
                async with move_on_when(connection.wait_closed):
                    await held.end_of_life()
                self._lose(held)  # before it is closed: that may take a while
        finally:
            self._lose(held)

    def _lose(self, held: Held[Spec, C]) -> None:
        held.step(Step.LOST)
        if held in self._all:
            self._all.remove(held)

    def _give_back(self, held: Held[Spec, C], *, abandoned: bool) -> None:
        held.leases -= 1
        now = trio.current_time()
        if abandoned and not held.abandoned:
            held.abandoned = True
            held.live_until(now + self._abandoned_for)
        if held.leases:
            return
        held.step(Step.LAST_RETURNED)
        held.live_until(now if held.abandoned else now + self._idle_for)
        idle = [each for each in self._all if each.state is State.IDLE and not each.abandoned]
        for each in sorted(idle, key=lambda each: each.used)[: max(0, len(idle) - self._keep)]:
            self._lose(each)
            each.live_until(now)
