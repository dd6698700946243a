"""Runs as the store has them: all of a session, and one folded from its events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from sessionmgr.model import MessageSent, Run, decode_event, reduce_all
from sessionmgr.store.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Collection

    from sessionmgr.store import Store
    from sessionmgr.store.row import StoredRun


KEYS: Final = Redactor()
"""Finds well-known keys by their shapes: of a run that is over no other secret is known."""


async def all_runs(
    store: Store, session_id: str, *, statuses: Collection[str] | None = None
) -> list[StoredRun]:
    """Return the runs of a session, the oldest first."""
    found: list[StoredRun] = []
    cursor: int | None = None
    while True:
        page = await store.runs(session_id=session_id, statuses=statuses, cursor=cursor)
        found += page.rows
        cursor = page.cursor
        if cursor is None:
            return found[::-1]


async def fold(store: Store, stored: StoredRun) -> Run:
    """Make a run's record from its stored events.

    Its text may have been put together of pieces that an older version has stored as they came.
    """
    run, _ = await read_run(store, stored)
    return replace(run, text=KEYS.text.redact(run.text))


async def read_run(store: Store, stored: StoredRun) -> tuple[Run, dict[str, MessageSent]]:
    """Return a run's record, and the messages that were sent to it, by their ids."""
    run = Run(id=stored.run_id, session_id=stored.session_id, provider=stored.provider)
    said: dict[str, MessageSent] = {}
    after = (stored.first_seq or 1) - 1
    while True:
        page = await store.events(stored.session_id, after=after, run_id=stored.run_id)
        events = [decode_event(row.body) for row in page.rows]
        run = reduce_all(run, events)
        said.update((event.message_id, event) for event in events if isinstance(event, MessageSent))
        after = page.last
        if not page.more:
            return run, said
