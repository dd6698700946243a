"""The records of runs in the store: their rows, and runs rebuilt from their stored events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from sessionmgr.model import MessageSent, Run, decode_event, reduce_all
from sessionmgr.store import Redactor

if TYPE_CHECKING:
    from collections.abc import Collection

    from sessionmgr.store import Store, StoredRun


KEY_REDACTOR: Final = Redactor()
"""Redacts well-known keys by their shapes; a finished run's other secrets are unknown."""


async def read_session_runs(
    store: Store, session_id: str, *, statuses: Collection[str] | None = None
) -> list[StoredRun]:
    """Return the runs of a session, oldest first."""
    found: list[StoredRun] = []
    cursor: int | None = None
    while True:
        page = await store.runs(session_id=session_id, statuses=statuses, cursor=cursor)
        found += page.rows
        cursor = page.cursor
        if cursor is None:
            return found[::-1]


async def fold_run(store: Store, stored: StoredRun) -> Run:
    """Rebuild a run from its stored events.

    Its text may consist of pieces that an older version stored unredacted.
    """
    run, _ = await read_run(store, stored)
    return replace(run, text=KEY_REDACTOR.text.redact(run.text))


async def read_run(store: Store, stored: StoredRun) -> tuple[Run, dict[str, MessageSent]]:
    """Rebuild a run from its stored events, with the messages sent to it, by id."""
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
