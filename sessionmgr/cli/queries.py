"""Store queries that several verbs share."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.cli.errors import CommandLineInvalid, StoreEmpty
from sessionmgr.cli.terminal.signals import run_verb
from sessionmgr.manager import (
    fold_run as fold_run,
    is_lease_valid,
    is_owner_alive,
    read_session_runs as read_session_runs,
)
from sessionmgr.model import MessageSent, Session, decode_event, decode_run, without_unknown
from sessionmgr.store import open_sqlite_store

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

    from sessionmgr.cli.config.configuration import Configuration
    from sessionmgr.store import Lease, Store, StoredRun

PATIENCE: Final = 5.0
"""Seconds to wait for another process's lock on the file."""


@asynccontextmanager
async def open_existing_store(configuration: Configuration) -> AsyncGenerator[Store, None]:
    """Open the store of the settings; a missing one is not created.

    Raises:
        StoreEmpty: The default store does not exist.
        CommandLineInvalid: The store that the settings name does not exist.
        StoreUnusable: The store cannot be used; the error says why.
    """
    path = configuration.store
    if not path.exists():
        source = configuration.sources.get("store")
        if source is None:
            raise StoreEmpty(f"nothing is stored yet: {path} does not exist")
        raise CommandLineInvalid(f"no store at {path} (set by {source}); check the path")
    async with open_sqlite_store(path, patience=PATIENCE) as store:
        yield store


def with_store(
    args: argparse.Namespace, work: Callable[[argparse.Namespace, Store], Awaitable[int]]
) -> int:
    """Run a function on the store of the settings, and return its exit code."""

    async def main() -> int:
        async with open_existing_store(args.configuration) as store:
            return await work(args, store)

    return run_verb(main)


async def first_prompt(store: Store, session_id: str, *, run_id: str | None = None) -> str | None:
    """Return the first prompt of a session, or of one of its runs."""
    page = await store.events(session_id, run_id=run_id, types=["message_sent"], limit=1)
    for row in page.rows:
        event = decode_event(row.body)
        if isinstance(event, MessageSent):
            return event.content
    return None


def decode_session(body: bytes) -> Session:
    """Decode a session's record, ignoring fields that a later version has added."""
    return msgspec.convert(without_unknown(msgspec.json.decode(body), Session), Session)


async def live_leases(store: Store, session_id: str = "ses_") -> Mapping[str, Lease]:
    """Return the leases of the sessions that a living process owns."""
    now = int(time.time() * 1000)
    return {
        lease.name: lease for lease in await store.leases(session_id) if is_lease_valid(lease, now)
    }


def owner_name(lease: Lease) -> str:
    """Name the process that owns a session; a pid of another PID namespace is not shown."""
    named = f"process {lease.owner.pid}"
    if is_owner_alive(lease.owner):
        return named
    left = max(0.0, lease.expires / 1000 - time.time())
    return (
        f"{named} of another container, or one that cannot be seen from here (its lease lasts "
        f"{left:.0f} s more, unless it is renewed)"
    )


ALIVE: Final = frozenset({"pending", "running"})
ORPHANED: Final = "orphaned"
"""The status of an active run whose process is gone."""


ASKS: Final = "asks"
"""The status of a run that waits for an answer to a question."""


def observed_status(status: str, *, held: bool, asks: bool = False) -> str:
    """Return the status of a run as other processes can observe it."""
    if status in ALIVE:
        if not held:
            return ORPHANED
        if asks:
            return ASKS
    return status


def waits_for_answer(stored: StoredRun) -> bool:
    """Return whether a run has an open question."""
    return stored.status in ALIVE and bool(decode_run(stored.body).open_approvals)
