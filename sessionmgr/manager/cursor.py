"""Cursors: each yields every stored event once, in order, at its reader's own pace.

A cursor holds a number and a few rows, no task and no channel. It delays no other task, and needs
no clean-up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.model import (
    TERMINAL_TYPES,
    AnyEvent,
    RunEnded,
    SessionClosed,
    UnknownEvent,
    decode_event,
)
from sessionmgr.store import StoreError, StoreTimeout
from sessionmgr.trio_util_types import move_on_when

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterator, Sequence

    from sessionmgr.manager.lazy_event import LazyEvent
    from sessionmgr.manager.manager_state import ManagerState
    from sessionmgr.manager.session_state import SessionState
    from sessionmgr.store import EventPage

PAGE: Final = 256
# The types of events that can be the last of a run or session.
_LAST: Final = frozenset({SessionClosed, UnknownEvent, *RunEnded.__subclasses__()})


class Cursor:
    """An async iterator over the events of a session, or of one run in it.

    When its manager has closed, it ends with the stored events.
    """

    def __init__(
        self,
        manager_state: ManagerState,
        session_id: str,
        *,
        after: int = 0,
        until: int | None = None,
        run_id: str | None = None,
        types: Collection[str] | None = None,
        ended: LazyEvent | None = None,
    ) -> None:
        """Read a session's events.

        `ended` is set when the run is over. Then iteration stops, even if the end is not stored.
        """
        self._state: Final = manager_state
        self._session_id = session_id
        self._after = after
        self._until = until
        self._run_id: Final = run_id
        self._types: Final = None if types is None else frozenset(types)
        self._ended: Final = ended
        self._wants_all: Final = until is None and run_id is None and types is None
        self._events: Iterator[AnyEvent] = iter(())
        self._done = False
        """Whether no more events will come."""
        self._more_stored = False
        """Whether the store had more events than the last read returned."""

    def __aiter__(self) -> Cursor:
        """Iterate over the remaining events."""
        return self

    async def __anext__(self) -> AnyEvent:
        """Wait for the next event and return it."""
        for event in self._events:
            return event
        found = await self.batch()
        if not found:
            raise StopAsyncIteration
        self._events = iter(found)
        return next(self._events)

    async def batch(self) -> Sequence[AnyEvent]:
        """Wait for events, and return all that are available; an empty result is the end.

        This is the cheaper way for a close follower.
        """
        if left := list(self._events):
            return left
        self._state.require_own_trio_run()
        while not self._done:
            found = await self._fetch()
            if found:
                return self._until_last(found)
        await trio.lowlevel.checkpoint()
        return ()

    async def aclose(self) -> None:
        """Stop reading."""
        self._done = True
        self._events = iter(())

    def _until_last(self, events: Sequence[AnyEvent]) -> Sequence[AnyEvent]:
        """Return the events up to the last one to read, if that is among these."""
        if _LAST.isdisjoint(map(type, events)):
            return events
        for place, event in enumerate(events, 1):
            if self._ended and event.run_id == self._run_id and event.type in TERMINAL_TYPES:
                self._done = True
                return events[:place]
        # A reopened session has more events after its closing.
        last = events[-1]
        is_end = last.type == "session_closed" and last.seq == self._after
        self._done = is_end and not self._more_stored
        return events

    async def _fetch(self) -> Sequence[AnyEvent]:
        """Return the available events; without any, wait for some.

        Raises:
            StoreTimeout: The manager has closed, and the store does not answer.
        """
        lifetime = self._state.lifetime
        was_over = lifetime.is_over or (self._ended is not None and self._ended.is_set())
        live = self._state.live_sessions.get(self._session_id)
        if live is not None and (recent := live.recent_events(self._after)):
            return self._select(live, recent)
        opened = self._state.opened.get(self._session_id)
        if opened is not None and (opened.closed or was_over):
            self._done = True
            return ()
        if opened is not None:
            with lifetime.cancel_after_end(0):
                await opened.known.wait()
            self._done = opened.closed
            return ()
        if live is None or (live.stored and self._after < live.last_seq):
            page = await self._read()
            self._more_stored = page.more
            self._after = max(self._after, page.last)
            if page.rows or page.more:
                return [decode_event(row.body) for row in page.rows]
        if was_over or (self._until is not None and self._after >= self._until):
            self._done = True
        elif live is not None:
            await live.wait_for_events(self._after)
            if recent := live.recent_events(self._after):
                return self._select(live, recent)
        else:
            with lifetime.cancel_after_end(0):
                await self._wait_for_more()
        return ()

    def _select(self, live: SessionState, recent: Sequence[AnyEvent]) -> Sequence[AnyEvent]:
        """Return the matching events among those in memory."""
        self._after = live.last_seq
        self._more_stored = False
        if self._wants_all:
            return recent
        run_id, until, types = self._run_id, self._until, self._types
        return [
            event
            for event in recent
            if (run_id is None or event.run_id == run_id)
            and (until is None or event.seq <= until)
            and (types is None or event.type in types)
        ]

    async def _wait_for_more(self) -> None:
        """Wait until the store has more events, or no more can come."""
        store = self._state.store
        if self._ended is None:
            await store.wait(self._session_id, after=self._after)
            return
        failure: StoreError | None = None
        async with move_on_when(self._ended.wait):
            try:
                await store.wait(self._session_id, after=self._after)
            except StoreError as error:  # raised alone, not in a group
                failure = error
        if failure is not None:
            raise failure

    async def _read(self) -> EventPage:
        with self._state.lifetime.cancel_after_end(self._state.clocks.of("close")):
            return await self._state.store.events(
                self._session_id,
                after=self._after,
                until=self._until,
                run_id=self._run_id,
                types=self._types,
                limit=PAGE,
            )
        raise StoreTimeout("the store")


class RunCursor(Cursor):
    """The events of one run that are stored when the first one is read.

    To await it looks the run up first.
    """

    def __init__(self, manager_state: ManagerState, run_id: str) -> None:
        super().__init__(manager_state, "", until=0, run_id=run_id)
        self._is_found = False

    def __await__(self) -> Generator[object, None, RunCursor]:
        """Look the run up.

        Raises:
            UnknownId: The run does not exist.
        """
        return self._find_session().__await__()

    async def _find_session(self) -> RunCursor:
        await self._find()
        return self

    async def _find(self) -> None:
        if self._is_found:
            await trio.lowlevel.checkpoint()
            return
        assert self._run_id is not None
        stored = await self._state.store.run(self._run_id)
        self._session_id = stored.session_id
        self._after, self._until = (stored.first_seq or 1) - 1, stored.last_seq or 0
        self._is_found = True

    async def _fetch(self) -> Sequence[AnyEvent]:
        await self._find()
        return await super()._fetch()
