"""Pool of connections: leased to runs, and kept for a while when idle.

A connection is a child of the provider's own supervisor, so it ends with its branch and not with a
run. The pool limits the number of idle connections, not of all. If an exception leaves a lease, or
the lease is abandoned, its conversation is in an unknown state. The connection is then never leased
again. It is closed when its other leases have been returned, or at a deadline, so that one
unresponsive conversation does not interrupt the others.
"""

from __future__ import annotations

import math
from contextlib import asynccontextmanager
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import trio

from sessionmgr.adapter import Closable, KeyedSpec
from sessionmgr.otp import StartFailed, child
from sessionmgr.trio_util_types import move_on_when

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Hashable

    from sessionmgr.adapter import Connect
    from sessionmgr.otp import DynamicSupervisor

C = TypeVar("C", bound=Closable)
Spec = TypeVar("Spec", bound=KeyedSpec)

MAX_IDLE: Final = 5
IDLE_FOR: Final = 300.0
ABANDONED_FOR: Final = 600.0
"""Seconds that an abandoned connection has for its other leases."""


class ConnectionState(Enum):
    """The state of a pooled connection."""

    BUSY = auto()
    IDLE = auto()
    DEAD = auto()


class ConnectionStep(Enum):
    """A step of its life cycle."""

    LEASED = auto()
    RETURNED = auto()
    """The last of its leases was returned."""
    LOST = auto()


TRANSITIONS: Final[dict[ConnectionState, dict[ConnectionStep, ConnectionState]]] = {
    ConnectionState.BUSY: {
        ConnectionStep.LEASED: ConnectionState.BUSY,
        ConnectionStep.RETURNED: ConnectionState.IDLE,
        ConnectionStep.LOST: ConnectionState.DEAD,
    },
    ConnectionState.IDLE: {
        ConnectionStep.LEASED: ConnectionState.BUSY,
        ConnectionStep.LOST: ConnectionState.DEAD,
    },
    ConnectionState.DEAD: {
        ConnectionStep.RETURNED: ConnectionState.DEAD,
        ConnectionStep.LOST: ConnectionState.DEAD,
    },
}


class PooledConnection(Generic[Spec, C]):
    """Connection of a pool, from the decision to connect until it is closed."""

    def __init__(self, spec: Spec) -> None:
        self.spec: Final = spec
        self.connection: C | None = None
        self.state = ConnectionState.BUSY
        self.leases = 0
        self.abandoned = False
        """Whether a conversation on it was left in an unknown state."""
        self.ready = trio.Event()
        """Set when it is connected, or has failed to."""
        self._expires_at = math.inf
        self._changed = trio.Event()

    def step(self, step: ConnectionStep) -> None:
        """Move to the state that follows a step."""
        self.state = TRANSITIONS[self.state][step]

    def expire_at(self, deadline: float) -> None:
        """Set the time at which it is closed; a later call replaces it."""
        self._expires_at = deadline
        self._changed.set()

    async def wait_expired(self) -> None:
        """Wait until the time to close it has come."""
        await trio.lowlevel.checkpoint()
        while trio.current_time() < self._expires_at:
            self._changed = trio.Event()
            with trio.move_on_at(self._expires_at):
                await self._changed.wait()


class ConnectionLease(Generic[C]):
    """Lease of a connection for the length of a block."""

    def __init__(self, connection: C) -> None:
        self.connection: Final = connection
        self.is_abandoned = False

    def abandon(self) -> None:
        """Mark the conversation as unresponsive, or in an unknown state."""
        self.is_abandoned = True


class ConnectionPool(Generic[Spec, C]):
    """Pool of one provider's connections; each serves up to `max_leases` leases at once."""

    def __init__(
        self,
        connect: Connect[Spec, C],
        *,
        max_leases: int = 1,
        max_idle: int = MAX_IDLE,
        idle_for: float = IDLE_FOR,
        abandoned_for: float = ABANDONED_FOR,
    ) -> None:
        self._connect: Final = connect
        self._max_leases: Final = max_leases
        self._max_idle: Final = max_idle
        self._idle_for: Final = idle_for
        self._abandoned_for: Final = abandoned_for
        self._all: Final[list[PooledConnection[Spec, C]]] = []
        """Connections that can be leased, or soon can; the most recently used is the last."""

    def connection_states(self) -> list[ConnectionState]:
        """Return the state of each connection, the least recently used first."""
        return [pooled.state for pooled in self._all]

    def retire(self, key: Hashable) -> None:
        """Close the idle connections of a key now, and its busy ones when they are returned."""
        for pooled in [each for each in self._all if each.spec.key == key]:
            if pooled.state is ConnectionState.IDLE:
                self._remove(pooled)
                pooled.expire_at(trio.current_time())
            else:
                pooled.abandoned = True

    @asynccontextmanager
    async def lease(
        self, spec: Spec, owner: DynamicSupervisor
    ) -> AsyncGenerator[ConnectionLease[C], None]:
        """Lease a connection: an idle one if there is one, else a new child of `owner`.

        Raises:
            Exception: The connection could not be opened; the exception is that of `connect`.
        """
        pooled = await self._acquire(spec, owner)
        assert pooled.connection is not None
        lease = ConnectionLease(pooled.connection)
        try:
            yield lease
        except BaseException:
            lease.abandon()
            raise
        finally:
            self._release(pooled, abandoned=lease.is_abandoned)

    async def _acquire(self, spec: Spec, owner: DynamicSupervisor) -> PooledConnection[Spec, C]:
        while True:
            pooled = self._find(spec)
            is_new = pooled is None
            if pooled is None:
                pooled = PooledConnection[Spec, C](spec)
            else:
                self._all.remove(pooled)
            self._all.append(pooled)
            pooled.leases += 1
            pooled.step(ConnectionStep.LEASED)
            pooled.expire_at(math.inf)
            try:
                if is_new:
                    await self._start(pooled, owner)
                # Another task may still be connecting it: a leased connection can be unready.
                await pooled.ready.wait()
            except BaseException:
                self._release(pooled, abandoned=False)
                raise
            if pooled.connection is not None and pooled.state is not ConnectionState.DEAD:
                return pooled
            # It failed or ended while this task waited for it: try another.
            self._release(pooled, abandoned=False)

    def _find(self, spec: Spec) -> PooledConnection[Spec, C] | None:
        """Return the connection to use; among several, the most recently used one."""
        for pooled in reversed(self._all):
            is_free = pooled.leases < self._max_leases and not pooled.abandoned
            if is_free and pooled.spec.key == spec.key:
                return pooled
        return None

    async def _start(self, pooled: PooledConnection[Spec, C], owner: DynamicSupervisor) -> None:
        try:
            await owner.start_child(child(self._run_connection, pooled, restart="temporary"))
        except StartFailed as error:
            raise error.__cause__ or error from None
        finally:
            if pooled.connection is None:
                self._remove(pooled)
            pooled.ready.set()

    async def _run_connection(
        self, pooled: PooledConnection[Spec, C], *, task_status: trio.TaskStatus[None]
    ) -> None:
        """Connect, and own the connection until it ends or expires: the body of a child."""
        try:
            async with self._connect(pooled.spec) as connection:
                pooled.connection = connection
                task_status.started()
                async with move_on_when(connection.wait_closed):
                    await pooled.wait_expired()
                    # Remove it at once: leaving this block executes checkpoints, at which another
                    # run could lease it.
                    self._remove(pooled)
                self._remove(pooled)  # it may have ended by itself, and closing can take a while
        finally:
            self._remove(pooled)

    def _remove(self, pooled: PooledConnection[Spec, C]) -> None:
        pooled.step(ConnectionStep.LOST)
        if pooled in self._all:
            self._all.remove(pooled)

    def _release(self, pooled: PooledConnection[Spec, C], *, abandoned: bool) -> None:
        pooled.leases -= 1
        now = trio.current_time()
        if abandoned and not pooled.abandoned:
            pooled.abandoned = True
            pooled.expire_at(now + self._abandoned_for)
        if pooled.leases:
            return
        pooled.step(ConnectionStep.RETURNED)
        pooled.expire_at(now if pooled.abandoned else now + self._idle_for)
        idle = [
            each for each in self._all if each.state is ConnectionState.IDLE and not each.abandoned
        ]
        for each in idle[: max(0, len(idle) - self._max_idle)]:
            self._remove(each)
            each.expire_at(now)
