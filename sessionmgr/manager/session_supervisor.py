"""The supervisor of sessions and providers: it starts recorders and branches on demand."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
import trio
from msgspec.structs import replace

from sessionmgr.adapter import find_adapter
from sessionmgr.manager.committer import Committer
from sessionmgr.manager.errors import ManagerClosing, ProviderDown, RecorderUnavailable, SessionBusy
from sessionmgr.manager.owner import describe_holder
from sessionmgr.manager.provider_branch import ProviderBranch
from sessionmgr.manager.reconciler import LEASE_MS, Reconciler
from sessionmgr.manager.recorder import Recorder
from sessionmgr.manager.session_state import SessionState
from sessionmgr.model import Session, without_unknown
from sessionmgr.otp import (
    DynamicSupervisor,
    OtpError,
    StartFailed,
    Supervisor,
    SupervisorNotRunning,
    SupervisorStopping,
    TaskHandle as Task,
    TaskSupervisor,
    child,
)
from sessionmgr.store import LeaseHeld, LeaseLost, StoreClosed, StoreError, StoreUnusable, UnknownId

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sessionmgr.manager.manager_state import ManagerState
    from sessionmgr.store import Lease

log: Final = logging.getLogger("sessionmgr.manager")
T = TypeVar("T")

RENEW_EVERY: Final = 30.0
SWEEP_EVERY: Final = 30.0
RELEASE: Final = 1.0
"""Seconds for releasing a lease while the manager closes; else the lease expires."""


class SessionSupervisor:
    """The supervisor of sessions: a recorder for each live session, a branch for each provider."""

    def __init__(self, manager_state: ManagerState, reconciler: Reconciler) -> None:
        tasks = TaskSupervisor(name="tasks")
        self._committer: Final = Committer(manager_state, tasks, self._recorder_stopped)
        self.sessions: Final = Supervisor(
            tasks, child(self._run_committer, id="committer"), name="sessions"
        )
        self._is_running = False
        """Whether the committer drives the recorders."""
        self.providers: Final = DynamicSupervisor(name="providers")
        self._state: Final = manager_state
        self._reconciler: Final = reconciler
        self._fences: Final[dict[str, int]] = {}
        self._one_at_a_time: Final[dict[str, trio.Lock]] = {}

    def require_provider(self, provider: str) -> ProviderBranch:
        """Return the branch of a provider; make it if necessary.

        Raises:
            ProviderUnknown: The provider does not exist.
            AgentsFileInvalid: Its registry file of agents is missing or invalid.
            AdapterBroken: Its adapter cannot be loaded.
        """
        manager_state = self._state
        if provider not in manager_state.providers:
            adapter = find_adapter(provider, manager_state.adapters, manager_state.agents)
            manager_state.providers[provider] = ProviderBranch(
                adapter,
                manager_state.launcher,
                manager_state.environ,
                manager_state.timeouts.watch_run,
            )
        return manager_state.providers[provider]

    async def start_branch(self, provider: str) -> None:
        """Start a provider's branch if it is not up.

        Raises:
            ProviderDown: The branch does not start.
        """
        tree = self.require_provider(provider)
        if tree.is_up:
            await trio.lowlevel.checkpoint_if_cancelled()
        else:
            await self._start_branch(provider, tree)

    async def _start_branch(self, provider: str, tree: ProviderBranch) -> None:
        async with self._exclusive(f"provider {provider}"):
            if tree.is_up:
                return
            tree.require_up()
            try:
                await self.providers.start_child(child(tree.run, restart="temporary"))
            except (SupervisorNotRunning, SupervisorStopping):
                raise ManagerClosing from None
            except StartFailed as error:
                tree.require_up()  # usually the branch itself has noted that it is down
                tree.mark_down(str(error))
                tree.require_up()
                raise ProviderDown(provider, str(error), 0) from error

    async def live_session(self, session: Session) -> SessionState:
        """Return the session, live and with a recorder.

        Raises:
            SessionBusy: Another manager owns it.
            RecorderUnavailable: Its open runs could not be ended.
        """
        async with self._exclusive(session.id):
            while (settling := self._state.reconciling.get(session.id)) is not None:
                await settling.wait()
            live = self._state.live_sessions.get(session.id)
            if live is not None:
                return live
            self._state.waking.add(session.id)
            try:
                return await self._start_recorder(session)
            finally:
                self._state.waking.discard(session.id)

    async def _start_recorder(self, session: Session) -> SessionState:
        live = await self._read_session(session)
        self._require_running()
        try:
            lease = await self._acquire_session(live)
            self._require_running()
        except LeaseHeld as held:
            raise self._lease_held_error(held) from None
        except (StoreError, ManagerClosing):
            self._launch(self._release_failed_start, session.id)
            raise
        except Exception as error:
            self._launch(self._release_failed_start, session.id)
            raise RecorderUnavailable(session.id) from error
        except BaseException:
            # The lease may be ours nevertheless: the store completes interrupted calls.
            self._launch(self._release_failed_start, session.id)
            raise
        self._state.live_sessions[session.id] = live
        self._fences[session.id] = lease.fence
        self._committer.add_recorder(Recorder(live, self._state, self._committer, lease))
        return live

    def _require_running(self) -> None:
        """Check that the committer would drive a recorder.

        Raises:
            ManagerClosing: It would not.
        """
        if not self._is_running:
            raise ManagerClosing

    def _lease_held_error(self, held: LeaseHeld) -> SessionBusy:
        detail = describe_holder(held.holder, held.expires - self._state.milliseconds())
        return SessionBusy(held.name, held.holder, held.expires, detail)

    async def _read_session(self, session: Session) -> SessionState:
        """Return a session's state as read from the store."""
        if session.id in self._state.fresh:
            self._state.fresh.discard(session.id)
            return self._new_session_state(session)
        try:
            stored = await self._state.store.session(session.id)
        except UnknownId:
            return self._new_session_state(session)
        self._state.mark_stored(session.id)
        known = msgspec.convert(without_unknown(msgspec.json.decode(stored.body), Session), Session)
        is_closed = stored.state == "closed"
        known = replace(known, state="closed" if is_closed else "open")
        live = SessionState(known, stored=True, last_seq=stored.last_seq)
        live.closing = is_closed
        return live

    def _new_session_state(self, session: Session) -> SessionState:
        live = SessionState(session, stored=False, last_seq=0)
        opened = self._state.opened.get(session.id)
        live.closing = opened is not None and opened.closed
        return live

    async def _acquire_session(self, live: SessionState) -> Lease:
        """Acquire a session's lease, and end its open runs."""
        store, session_id = self._state.store, live.session.id
        if not live.stored:
            return await self._reconciler.acquire_lease(session_id)
        interrupted = await self._reconciler.interruption_reason(session_id)
        lease = await self._reconciler.acquire_lease(session_id)
        # Its former owner may have left runs open.
        await self._reconciler.end_open_runs(lease, interrupted)
        live.last_seq = (await store.session(session_id)).last_seq
        costs = (await store.costs([session_id])).get(session_id)
        if costs is not None:
            live.account.open(costs)
        return lease

    async def _run_committer(self) -> None:
        """Run the committer; when it is stopped, abandon the remaining sessions."""
        self._is_running = True
        try:
            await self._committer.run()
        except Exception:  # it restarts, and continues with its pending appends
            raise
        except BaseException:  # the manager stops, and the runs are not over
            self._is_running = False
            with trio.move_on_after(RELEASE, shield=True):
                async with trio.open_nursery() as nursery:
                    for recorder in list(self._committer.recorders):
                        nursery.start_soon(self._abandon, recorder)
            raise

    async def _abandon(self, recorder: Recorder) -> None:
        try:
            await self._reconciler.abandon(recorder.session_state)
        finally:
            self._committer.abandon_recorder(recorder)

    def _recorder_stopped(self, recorder: Recorder) -> None:
        """Forget a session whose recorder has stopped, and release its lease."""
        self._forget_session(recorder.session_state)
        self._launch(self._release_lease, recorder.lease)

    def _launch(self, release: Callable[[T], Awaitable[None]], which: T) -> None:
        try:
            self._committer.tasks.start_handle(
                Task(self._within_release_time, (release, which), None)
            )
        except OtpError as error:  # the lease expires by itself
            log.warning("A lease was not released. error=%s", error)

    async def _within_release_time(self, release: Callable[[T], Awaitable[None]], which: T) -> None:
        with trio.move_on_after(RELEASE, shield=True):
            await release(which)

    async def _release_lease(self, lease: Lease) -> None:
        """Release a lease, so that no manager has to wait until it expires."""
        try:
            await self._state.store.release(lease.name, lease.fence)
        except StoreError as error:
            log.warning("A lease was not released. session=%s error=%s", lease.name, error)

    async def _release_failed_start(self, session_id: str) -> None:
        """Release the lease of a session that did not start, if it is ours."""
        async with self._exclusive(session_id):
            if self._state.is_owned(session_id):
                return  # another caller has started it, with a lease that replaces this one
            try:
                lease = await self._reconciler.acquire_lease(session_id)
            except StoreError as error:
                log.warning("A lease was not released. session=%s error=%s", session_id, error)
            else:
                await self._release_lease(lease)

    def _forget_session(self, live: SessionState) -> None:
        """Put the session to sleep: the next caller wakes it from the store."""
        if self._state.live_sessions.get(live.session.id) is live:
            del self._state.live_sessions[live.session.id]
            self._fences.pop(live.session.id, None)
        live.asleep = True
        self._state.timeouts.disarm_idle(live)
        live.wake_waiters()

    async def reconcile_session(self, session_id: str, why: str | None = None) -> int:
        """End all open runs of a session without a recorder; return their number.

        Raises:
            LeaseHeld: Another live manager owns it.
            UnknownId: The session does not exist.
        """
        async with self._exclusive(
            session_id
        ):  # else this would take the lease from a recorder that is about to start
            if self._state.is_owned(session_id):
                return 0
            return await self._reconciler.reconcile_session(session_id, why)

    async def sweep_abandoned_runs(self) -> None:
        """End the runs of other managers that die, every `SWEEP_EVERY` seconds."""
        while True:
            await trio.sleep(SWEEP_EVERY)
            try:
                await self._sweep_once()
            except StoreError as error:
                log.warning("The sweep for abandoned runs failed. error=%s", error)

    async def _sweep_once(self) -> None:
        for session_id in await self._reconciler.unfinished_sessions():
            with suppress(LeaseHeld, UnknownId):  # its owner lives, or it was never stored
                await self.reconcile_session(session_id)

    async def renew_leases(self) -> None:
        """Renew the leases of all live sessions before they expire."""
        manager_state = self._state
        while True:
            await trio.sleep(RENEW_EVERY)
            for session_id, fence in list(self._fences.items()):
                if self._fences.get(session_id) != fence:
                    continue  # it went to sleep meanwhile
                try:
                    await manager_state.store.renew(
                        session_id, fence, now=manager_state.milliseconds(), ttl=LEASE_MS
                    )
                except LeaseLost:
                    if self._fences.get(session_id) == fence:  # else it was released meanwhile
                        log.warning("A lease was lost to another manager. session=%s", session_id)
                except (StoreClosed, StoreUnusable) as error:
                    log.warning("A lease was not renewed. session=%s error=%s", session_id, error)

    def _exclusive(self, name: str) -> _ExclusiveTurn:
        """Return a lock for a session or provider: its starts happen one at a time."""
        return _ExclusiveTurn(self._one_at_a_time, name)


class _ExclusiveTurn:
    """A lock by name; acquiring a free one does not yield to the scheduler."""

    __slots__ = ("_lock", "_locks", "_name")

    def __init__(self, locks: dict[str, trio.Lock], name: str) -> None:
        self._locks: Final = locks
        self._name: Final = name
        self._lock: Final = locks.setdefault(name, trio.Lock())

    async def __aenter__(self) -> None:
        await trio.lowlevel.checkpoint_if_cancelled()
        try:
            self._lock.acquire_nowait()
        except trio.WouldBlock:
            await self._lock.acquire()

    async def __aexit__(self, *exc_info: object) -> None:
        self._lock.release()
        if not self._lock.locked() and self._locks.get(self._name) is self._lock:
            del self._locks[self._name]
