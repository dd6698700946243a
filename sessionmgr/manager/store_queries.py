"""A manager's queries to its store: events, results, sessions, runs, costs and pauses."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec
import trio

from sessionmgr.manager.argument_checks import RECORDS, require_arguments
from sessionmgr.manager.cursor import Cursor, RunCursor
from sessionmgr.manager.partial_costs import read_costs
from sessionmgr.manager.run_records import fold_run, read_session_runs
from sessionmgr.manager.status import UsageAndCost, usage_and_cost
from sessionmgr.model import (
    Run,
    RunResult,
    RunStatus,
    Session,
    decode_run,
    without_unknown,
)
from sessionmgr.store import StoreBusy, UnknownId

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path
    from typing import Literal

    from sessionmgr.manager.manager_state import ManagerState
    from sessionmgr.manager.session_supervisor import SessionSupervisor
    from sessionmgr.store import Store, StoredSession


RETRY: Final = 0.1
"""Seconds between two attempts to write into a store that another process has locked."""


class StoreQueries:
    """The part of a manager that reads the store."""

    _state: ManagerState
    _supervisor: SessionSupervisor

    def subscribe(
        self,
        session_id: str,
        *,
        after: int = 0,
        run_id: str | None = None,
        types: Collection[str] | None = None,
    ) -> Cursor:
        """Read a session's events after any number, and follow new ones.

        Args:
            session_id: The id of the session.
            after: The number of the last event to skip; by default the cursor begins with the first
                one.
            run_id: Only events of this run.
            types: Only events of these types, such as ["run_completed"].
        """
        require_arguments("subscribe", RECORDS, {"session_id": session_id, "types": types})
        self._state.require_own_trio_run()
        return Cursor(self._state, session_id, after=after, run_id=run_id, types=types)

    def events(self, run_id: str) -> RunCursor:
        """Read the stored events of one run.

        An unknown run is reported when the events are read or awaited.

        Args:
            run_id: The id of the run.
        """
        require_arguments("events", RECORDS, {"run_id": run_id})
        self._state.require_own_trio_run()
        return RunCursor(self._state, run_id)

    async def settled(self, session_id: str) -> list[Run]:
        """Return a session's runs, newest first, after ending those whose manager is gone.

        Runs that are active here are returned as they are.

        Args:
            session_id: The id of the session.

        Raises:
            UnknownId: The session does not exist.
            LeaseHeld: Another live manager owns it.
        """
        require_arguments("settled", RECORDS, {"session_id": session_id})
        manager_state = self._state
        manager_state.require_own_trio_run()
        await self._supervisor.reconcile_session(session_id)
        found = await read_session_runs(manager_state.store, session_id)
        return [decode_run(row.body) for row in reversed(found)]

    async def provider_pauses(self) -> dict[str, ProviderPause]:
        """Return the paused providers, with which batches start no runs now."""
        self._state.require_own_trio_run()
        return await read_provider_pauses(self._state.store, self._state.milliseconds() / 1000)

    async def pause_provider(self, provider: str, pause: ProviderPause | None) -> None:
        """Pause a provider for all batches on this store; None ends the pause.

        Args:
            provider: The name of the provider.
            pause: The pause, or None to end it.
        """
        self._state.require_own_trio_run()
        await write_provider_pause(self._state.store, provider, pause)

    async def has_mark(self, mark: str) -> bool:
        """Return whether a mark is in the store.

        Args:
            mark: The text of the mark.
        """
        self._state.require_own_trio_run()
        return await self._state.store.meta(f"mark/{mark}") is not None

    async def put_mark(self, mark: str) -> None:
        """Put a mark into the store, for programs that must recognize the store again.

        Args:
            mark: The text of the mark.

        Raises:
            StoreError: The store cannot be written, or is locked for longer than the store clock.
        """
        manager_state = self._state
        manager_state.require_own_trio_run()
        until = trio.current_time() + (manager_state.clocks.of("store") or float("inf"))
        with manager_state.calling_store():
            while True:
                try:
                    await manager_state.store.put_meta(f"mark/{mark}", b"1")
                    return
                except StoreBusy:
                    if trio.current_time() >= until:
                        raise
                await trio.sleep(RETRY)

    async def has_any_session(self, ids: Collection[str]) -> bool:
        """Return whether one of these sessions is stored.

        Args:
            ids: Ids of sessions.
        """
        self._state.require_own_trio_run()
        for session_id in ids:
            with suppress(UnknownId):
                await self._state.store.session(session_id)
                return True
        return False

    @property
    def store_path(self) -> Path | None:
        """The file of the store; None if it was opened by the caller."""
        path = self._state.store_path
        return None if path is None else path.absolute()

    async def blob(self, sha256: str) -> bytes:
        """Return the blob with a hash, such as an image.

        Args:
            sha256: The hash, such as the `blob` of an image of a result.

        Raises:
            UnknownId: The blob does not exist.
        """
        require_arguments("blob", RECORDS, {"sha256": sha256})
        self._state.require_own_trio_run()
        return await self._state.store.blob(sha256)

    async def result(self, run_id: str) -> RunResult:
        """Return the stored part of a run's result.

        Args:
            run_id: The id of the run.

        Raises:
            UnknownId: The run does not exist.
        """
        require_arguments("result", RECORDS, {"run_id": run_id})
        self._state.require_own_trio_run()
        store = self._state.store
        return (await fold_run(store, await store.run(run_id))).result()

    async def sessions(
        self,
        *,
        provider: str | None = None,
        state: Literal["open", "closed"] | None = None,
        limit: int = 100,
    ) -> list[SessionSummary]:
        """Return stored sessions with the status of their last runs, newest first.

        Args:
            provider: Only sessions with this provider.
            state: Only "open" or only "closed" sessions.
            limit: The maximum number of sessions, by default 100.
        """
        filters = {"provider": provider, "state": state, "limit": limit}
        require_arguments("sessions", RECORDS, filters)
        self._state.require_own_trio_run()
        store = self._state.store
        page = await store.sessions(provider=provider, state=state, limit=limit)
        return [await _summary(store, row) for row in page.rows]

    async def costs(self, ids: Collection[str]) -> dict[str, UsageAndCost]:
        """Return the usage of sessions, runs or providers' sessions; unknown ids are omitted.

        Args:
            ids: Ids of sessions and runs, or provider sessions.
        """
        require_arguments("costs", RECORDS, {"ids": ids})
        self._state.require_own_trio_run()
        found = await read_costs(self._state.store, ids, self._state.adapters, self._state.agents)
        return {id: usage_and_cost(costs) for id, costs in found.items()}


class SessionSummary(Session, frozen=True, kw_only=True):
    """A stored session and the status of its last run."""

    status: RunStatus | None = None
    """The status of its last run. If the run's manager died, this stays "running" until a manager
    continues the session."""
    run_id: str | None = None
    """The id of its last run."""


async def _summary(store: Store, stored: StoredSession) -> SessionSummary:
    session = decode_session(stored.body)
    last = await store.runs(session_id=stored.session_id, limit=1)
    run = last.rows[0] if last.rows else None
    return SessionSummary(
        **msgspec.structs.asdict(session),
        status=None if run is None else RunStatus(run.status),
        run_id=None if run is None else run.run_id,
    )


def decode_session(body: bytes) -> Session:
    """Read a session's record, ignoring fields that a later version has added."""
    return msgspec.convert(without_unknown(msgspec.json.decode(body), Session), Session)


log: Final = logging.getLogger("sessionmgr.manager")


class ProviderPause(msgspec.Struct, frozen=True, kw_only=True):
    """A pause of a provider: no batch starts a run with it before a time."""

    until: float
    """Seconds since the epoch."""
    why: str = ""
    """The provider's message."""
    hits: int = 1
    """The number of times in a row that its limit was hit."""


async def read_provider_pauses(store: Store, now: float) -> dict[str, ProviderPause]:
    """Return the current pauses by provider."""
    found: dict[str, ProviderPause] = {}
    for provider, body in (await store.backoffs()).items():
        try:
            pause = _decoder.decode(body)
        except msgspec.MsgspecError as error:
            log.warning(
                "The pause of a provider is unreadable and ignored. provider=%s error=%s",
                provider,
                error,
            )
            continue
        if pause.until > now:
            found[provider] = pause
    return found


async def write_provider_pause(store: Store, provider: str, pause: ProviderPause | None) -> None:
    """Set a provider's pause, or delete it with None."""
    await store.put_backoff(provider, None if pause is None else msgspec.json.encode(pause))


_decoder: Final = msgspec.json.Decoder(ProviderPause)
