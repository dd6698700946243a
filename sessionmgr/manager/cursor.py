"""Reading along: whoever iterates a cursor sees each stored event once, in order, at his own pace.

A cursor holds a number and a few rows, no task and no channel. It delays nobody, and nothing has to
be done to be rid of it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from sessionmgr.model import TERMINAL_TYPES, AnyEvent, decode_event

if TYPE_CHECKING:
    from collections.abc import Collection

    from sessionmgr.manager.tables import Tables
    from sessionmgr.store.row import EventRow

PAGE: Final = 256


class Cursor:
    """An async iterator over the events of a session, or of one run in it."""

    def __init__(
        self,
        tables: Tables,
        session_id: str,
        *,
        after: int = 0,
        until: int | None = None,
        run_id: str | None = None,
        types: Collection[str] | None = None,
        to_the_end: bool = False,
    ) -> None:
        self._tables: Final = tables
        self._session_id: Final = session_id
        self._after = after
        self._until: Final = until
        self._run_id: Final = run_id
        self._types: Final = None if types is None else frozenset(types)
        self._to_the_end: Final = to_the_end
        self._rows: deque[EventRow] = deque()
        self._done = False

    def __aiter__(self) -> Cursor:
        """Iterate over what is left."""
        return self

    async def __anext__(self) -> AnyEvent:
        """Wait for the next event and return it."""
        while not self._rows:
            if self._done:
                raise StopAsyncIteration
            await self._fetch()
        row = self._rows.popleft()
        if self._is_last(row):
            self._done = True
            self._rows.clear()
        return decode_event(row.body)

    async def aclose(self) -> None:
        """Stop reading."""
        self._done = True
        self._rows.clear()

    def _is_last(self, row: EventRow) -> bool:
        if row.type == "session_closed":
            return True
        return self._to_the_end and row.run_id == self._run_id and row.type in TERMINAL_TYPES

    async def _fetch(self) -> None:
        """Read what there is; where there is nothing, wait for something."""
        live = self._tables.live.get(self._session_id)
        recent = None if live is None else live.recent(self._after)
        if live is not None and recent is not None and self._after < live.last_seq:
            self._rows.extend(row for row in recent if self._wanted(row))
            self._after = live.last_seq
            return
        opened = self._tables.opened.get(self._session_id)
        if self._session_id in self._tables.closed:
            self._done = True
            return
        if opened is not None:
            await opened.wait()
            return
        if live is None or (live.stored and self._after < live.last_seq):
            page = await self._tables.store.events(
                self._session_id,
                after=self._after,
                until=self._until,
                run_id=self._run_id,
                types=self._types,
                limit=PAGE,
            )
            self._rows.extend(page.rows)
            self._after = max(self._after, page.last)
            if self._rows or page.more:
                return
        if self._until is not None and self._after >= self._until:
            self._done = True
        elif live is not None:
            await live.heard(self._after)
        else:
            await self._tables.store.wait(self._session_id, after=self._after)

    def _wanted(self, row: EventRow) -> bool:
        return (
            (self._until is None or row.seq <= self._until)
            and (self._run_id is None or row.run_id == self._run_id)
            and (self._types is None or row.type in self._types)
        )
