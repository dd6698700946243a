"""The Reconciler writes terminal events for runs whose recorder or process is gone.

It is the one code path for all such cases. A run that a dead recorder or a killed process has left
`pending` or `running` in the store gets its terminal event here, under a higher fence, so that the
former owner of the session can write nothing any more. There are three occasions: the start of a
manager (`reconcile_store`), the crash of one of its recorders (`watch`), and the death of another
manager (`reconcile_session`, called by a sweep). While the store is unavailable, the terminal
events wait in memory and in the spool, and are stored when it is back.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal, cast

import trio
from msgspec.structs import replace

from sessionmgr.adapter import StopReason
from sessionmgr.manager.end_spool import redacted_end
from sessionmgr.manager.owner import is_owner_alive, is_owner_gone
from sessionmgr.manager.run_records import KEY_REDACTOR, fold_run, read_run, read_session_runs
from sessionmgr.manager.terminal_events import interrupted_event, terminal_event
from sessionmgr.model import (
    TERMINAL,
    EndCause,
    Event,
    Failure,
    FailureKind,
    Run,
    RunEnded,
    RunFailed,
    RunStarted,
    RunStatus,
    decode_event,
    encode_event,
    encode_json,
    reduce,
)
from sessionmgr.store import Append, EventRow, LeaseHeld, RunRow, UnknownId

if TYPE_CHECKING:
    from sessionmgr.manager.end_spool import EndSpool
    from sessionmgr.manager.manager_state import ManagerState
    from sessionmgr.manager.session_state import SessionState
    from sessionmgr.store import Lease, StoredRun

log: Final = logging.getLogger("sessionmgr.manager")

LOST: Final = Failure(
    kind=FailureKind.MANAGER_CRASHED,
    message="the process that owned the run died before the run ended",
)
LEASE_MS: Final = 90_000
RETRY: Final = 0.1
LONGEST: Final = 10.0
"""Maximum number of seconds between two attempts to reach the store."""
LAST_ATTEMPTS: Final = 5
"""The number of attempts to reach the store while the manager closes."""
UNENDED: Final = (RunStatus.PENDING.value, RunStatus.RUNNING.value)


class Reconciler:
    """The writer of terminal events for lost runs."""

    def __init__(self, manager_state: ManagerState, spool: EndSpool) -> None:
        self._state: Final = manager_state
        self._spool: Final = spool
        self._ends: Final[dict[str, RunEnded]] = {}
        """Terminal events of runs that could not be stored yet, by run."""
        self._late: Final[dict[str, None]] = {}
        """Sessions whose runs were released before the store could take their terminal events."""
        self._booted = False

    async def reconcile_store(self) -> int:
        """End the runs of managers that are gone; return the number of runs.

        This happens once: a restarted reconciler continues with the sessions that it had taken.
        """
        if self._booted:
            await trio.lowlevel.checkpoint()
            return 0
        spooled = await self._spool.read()
        self._ends.update(spooled)
        held: set[str] = set()
        ended = 0
        for session_id in await self.unfinished_sessions():
            if self._state.is_owned(session_id):
                continue  # it is live here
            try:
                ended += await self.reconcile_session(session_id)
            except LeaseHeld:  # another live manager owns it
                held.add(session_id)
        # The owning manager may be between spooling an end and storing it: that end
        # must survive a crash of the manager.
        seen_to = {run_id for run_id, end in spooled.items() if end.session_id not in held}
        await self._spool.drop(seen_to)
        for run_id in seen_to:
            self._ends.pop(run_id, None)
        self._booted = True
        if ended:
            log.warning(
                "%s", _boot_report(ended), extra={"event": "runs_reconciled", "runs": ended}
            )
        return ended

    async def unfinished_sessions(self) -> list[str]:
        """Return the sessions with runs that have not ended."""
        cursor = None
        sessions: dict[str, None] = {}
        while True:
            page = await self._state.store.runs(statuses=UNENDED, cursor=cursor)
            sessions.update(dict.fromkeys(run.session_id for run in page.rows))
            cursor = page.cursor
            if cursor is None:
                return list(sessions)

    async def watch(self) -> None:
        """End the runs that crashed recorders of this manager leave open."""
        async with trio.open_nursery() as nursery:
            for live in self._state.sessions_in_transition:
                nursery.start_soon(self._reconcile_crashed, live)
            for session_id in self._late:
                nursery.start_soon(self._store_spooled_ends, session_id)
            while True:
                for live in await self._state.orphans.wait_all():
                    self._state.sessions_in_transition[live] = (
                        live.committing_since or trio.current_time()
                    )
                    nursery.start_soon(self._reconcile_crashed, live)

    async def _reconcile_crashed(self, live: SessionState) -> None:
        """End the runs of a crashed recorder as soon as the store is available."""
        session_id = live.session.id
        why = await self._reconcile_in_time(live)
        if why is not None:
            self._late[session_id] = None
            await self._spool_ends(live, why)
        self._release(live)
        self._finish_reconciling(session_id)
        del self._state.sessions_in_transition[live]
        if why is not None:
            await self._store_spooled_ends(session_id)

    async def _reconcile_in_time(self, live: SessionState) -> Failure | None:
        """Reconcile a session within the store clock; return the failure if that is too short."""
        manager_state, session_id = self._state, live.session.id
        until = self._state.sessions_in_transition[live] + (
            manager_state.clocks.of("store") or float("inf")
        )
        level = logging.WARNING
        while True:  # noqa: ASYNC913  # each turn waits for the store
            try:
                await self.reconcile_session(session_id, "its recorder crashed")
                await self._load_stored_runs(live)
            except UnknownId:
                return None  # it was never stored
            except Exception as error:  # noqa: BLE001  # the last to try
                live.commit_error = error
                log.log(
                    level,
                    "The runs of a crashed session cannot be ended yet. session=%s error=%s",
                    session_id,
                    error,
                )
                level = logging.DEBUG  # the first of many equal attempts is logged
                if trio.current_time() >= until:
                    return Failure(kind=FailureKind.STORE_FAILED, message=str(error))
                await trio.sleep(RETRY)
            else:
                manager_state.mark_stored(session_id)
                return None

    async def _spool_ends(self, live: SessionState, failure: Failure | None) -> None:
        """Keep terminal events that cannot be stored now, in memory and in the spool."""
        try:
            lost = self._end_lost_runs(live, failure, self._state.timestamp())
            self._ends.update((event.run_id, event) for event in lost if event.run_id)
            if not lost:
                return
            if failure is None:  # the manager closes, unless only this part of the tree restarts
                self._late[live.session.id] = None
            await self._spool.add(lost)
        except Exception:  # for example a full disk
            log.exception("The ends of runs could not be spooled. session=%s", live.session.id)

    def _finish_reconciling(self, session_id: str) -> None:
        settled = self._state.reconciling.pop(session_id, None)
        if settled is not None:
            settled.set()

    async def _store_spooled_ends(self, session_id: str) -> None:
        """Store the spooled terminal events of a session."""
        pause = RETRY
        while session_id in self._late:
            pause = min(2 * pause, LONGEST)
            await trio.sleep(pause)
            await self._try_store_spooled(session_id)

    async def store_spooled_ends(self) -> None:
        """Store the spooled terminal events if the store is back, while the caller's time lasts."""
        await trio.lowlevel.checkpoint()
        for _ in range(LAST_ATTEMPTS):
            for session_id in list(self._late):
                under_way = self._state.reconciling.get(session_id)
                if under_way is not None:
                    await under_way.wait()
                elif session_id in self._late:
                    await self._try_store_spooled(session_id)
            if not self._late:
                return
            await trio.sleep(RETRY)

    async def _try_store_spooled(self, session_id: str) -> None:
        manager_state = self._state
        if session_id in manager_state.live_sessions:  # it was reconciled when it was woken
            self._late.pop(session_id, None)
            return
        if manager_state.is_owned(session_id):
            return
        manager_state.reconciling[session_id] = trio.Event()
        try:
            with suppress(UnknownId, LeaseHeld):  # another manager has done it
                await self.reconcile_session(session_id, "its recorder crashed")
            self._late.pop(session_id, None)
        except Exception as error:  # noqa: BLE001  # the last to try
            log.debug(
                "The runs of a crashed session cannot be ended yet. session=%s error=%s",
                session_id,
                error,
            )
        finally:
            self._finish_reconciling(session_id)

    async def _load_stored_runs(self, live: SessionState) -> None:
        """Adopt the stored records of runs whose recorder has crashed."""
        store = self._state.store
        for entry in live.runs.values():
            if not entry.is_over:
                try:
                    entry.apply_record(await fold_run(store, await store.run(entry.id)))
                except UnknownId:
                    continue  # it was never stored

    async def abandon(self, live: SessionState) -> None:
        """Spool the ends of a session whose recorder is stopped with open runs."""
        await self._spool_ends(live, None)
        self._release(live)

    def _release(self, live: SessionState, failure: Failure = LOST) -> None:
        """Cancel the tasks of a session's runs, and release all waiters; the recorder has died."""
        self._end_lost_runs(live, failure, "")
        for entry in live.runs.values():
            self._state.runs.pop(entry.id, None)
            entry.abandon_task()
        live.runs.clear()
        live.release_waiters()

    def release_waiters(self, why: str) -> None:
        """Release all waiters for open runs, because the manager is down."""
        failure = Failure(kind=FailureKind.MANAGER_CRASHED, message=why)
        # A run knows its session by a protocol alone, which `SessionState` implements.
        left = {cast("SessionState", entry.session_state) for entry in self._state.runs.values()}
        for live in left.union(self._state.sessions_in_transition, self._state.orphans.drain()):
            self._release(live, failure)
        for session_id in list(self._state.reconciling):
            self._finish_reconciling(session_id)

    def _end_lost_runs(
        self, live: SessionState, failure: Failure | None, at: str
    ) -> list[RunEnded]:
        """Make terminal events for the runs whose ends cannot be stored now."""
        lost: list[RunEnded] = []
        for entry in live.runs.values():
            if entry.is_over:
                continue
            if failure is not None:
                resumable = entry.run.provider_session_id is not None
                why = replace(failure, resumable=resumable)
                made: RunEnded = RunFailed(failure=why, synthetic=True)
            else:
                entry.conclude(StopReason(cause=EndCause.SHUTDOWN))
                assert entry.stop is not None
                made = replace(terminal_event(entry.stop, entry.run), synthetic=True)
            stamped = made.stamped(
                seq=0,
                at=at,
                session_id=live.session.id,
                run_id=entry.id,
                provider=live.session.provider,
            )
            # They go to the log, the spool and, later, the store, but not through a recorder.
            event = redacted_end(stamped, live.redactor)
            record = reduce(entry.run, event)
            if record.status not in TERMINAL:  # an end that needs a start
                record = reduce(reduce(record, RunStarted(run_id=entry.id)), event)
            entry.apply_record(record)
            lost.append(event)
        return lost

    async def interruption_reason(self, session_id: str) -> str:
        """Return how a session's runs were interrupted, judging by the lease left behind."""
        for lease in await self._state.store.leases(session_id):
            if lease.name == session_id and lease.owner.pid != self._state.owner.pid:
                return f"interrupted when process {lease.owner.pid} died"
        return "interrupted when its manager was lost"

    async def reconcile_session(self, session_id: str, why: str | None = None) -> int:
        """End all open runs of a session; return their number.

        `why` is the reason of the interruption, if it cannot be determined here.

        Raises:
            LeaseHeld: Another live manager owns the session.
            UnknownId: The session was never stored.
        """
        manager_state = self._state
        await manager_state.store.session(session_id)
        why = why or await self.interruption_reason(session_id)
        lease = await self.acquire_lease(session_id)
        ended = await self.end_open_runs(lease, why)
        await manager_state.store.release(session_id, lease.fence)
        return ended

    async def acquire_lease(self, session_id: str) -> Lease:
        """Acquire the lease of a session.

        Raises:
            LeaseHeld: Another live manager has it.
        """
        manager_state = self._state
        with manager_state.calling_store():
            return await manager_state.store.acquire(
                session_id,
                manager_state.owner,
                now=manager_state.milliseconds(),
                ttl=LEASE_MS,
                gone=is_owner_gone,
                alive=is_owner_alive,
            )

    async def end_open_runs(self, lease: Lease, why: str) -> int:
        """End all open runs of the session of a lease; return their number."""
        left = await read_session_runs(self._state.store, lease.name, statuses=UNENDED)
        for stored in left:
            await self._end(lease, stored, why)
        return len(left)

    async def _end(self, lease: Lease, stored: StoredRun, why: str) -> None:
        manager_state = self._state
        session = await manager_state.store.session(stored.session_id)
        run, said = await read_run(manager_state.store, stored)
        delivery: Literal["dropped", "unknown"] = "dropped" if run.started_at is None else "unknown"
        events: list[Event] = [
            replace(said[message_id], state=delivery)
            for message_id, state in run.open_messages.items()
            if state == "queued"
        ]
        end = self._ends.get(run.id) or interrupted_event(run, why)
        end = replace(end, ended_at=end.at or await self._last_event_time(stored.session_id, run))
        events.append(redacted_end(end, KEY_REDACTOR))  # an older version spooled it unredacted
        rows: list[EventRow] = []
        for seq, event in enumerate(events, session.last_seq + 1):
            stamped = event.stamped(
                seq=seq,
                at=manager_state.timestamp(),
                session_id=stored.session_id,
                run_id=stored.run_id,
                provider=stored.provider,
            )
            run = reduce(run, stamped)
            rows.append(EventRow(seq, stored.run_id, stamped.type, encode_event(stamped)))
        await manager_state.store.append(
            Append(
                session_id=stored.session_id,
                fence=lease.fence,
                batch=manager_state.batch_id(),
                first=session.last_seq + 1,
                at=manager_state.milliseconds(),
                rows=tuple(rows),
                runs=(
                    RunRow(stored.run_id, run.status.value, KEY_REDACTOR.redact(encode_json(run))),
                ),
            )
        )
        self._ends.pop(run.id, None)
        log.info("The end of a lost run was recorded. run=%s reason=%s", stored.run_id, why)
        self._apply_end(run)

    async def _last_event_time(self, session_id: str, run: Run) -> str | None:
        """Return the time of a run's last event."""
        page = await self._state.store.events(
            session_id, after=max(0, run.last_seq - 1), run_id=run.id, limit=1
        )
        heard = [decode_event(row.body) for row in page.rows]
        return heard[-1].at if heard and isinstance(heard[-1], Event) else None

    def _apply_end(self, run: Run) -> None:
        """Adopt the end of a run if the run is one of this manager."""
        entry = self._state.runs.pop(run.id, None)
        if entry is not None:
            entry.apply_record(run)
            entry.abandon_task()


def _boot_report(ended: int) -> str:
    """Return a sentence for users about the ended runs: the command line prints warnings."""
    if ended == 1:
        return "1 run was interrupted when its process died; its end is now recorded"
    return f"{ended} runs were interrupted when their process died; their ends are now recorded"
