"""Sample records and batches for the tests of stores."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from sessionmgr.store import (
    Append,
    EventRow,
    LeaseOwner,
    LedgerRow,
    NewSession,
    Request,
    RunRow,
    UnknownId,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from sessionmgr.store import EventPage, SnapshotRow, Store

SESSION: Final = "ses_a"
OTHER: Final = "ses_b"
RUN: Final = "run_a"
ME: Final = LeaseOwner("boot", 100, 5000)
YOU: Final = LeaseOwner("boot", 200, 6000)


async def new_session(
    store: Store, session_id: str = SESSION, provider: str = "echo", at: int = 1000
) -> None:
    """Create a session with a small record."""
    await store.create_session(
        NewSession(session_id=session_id, provider=provider, at=at, body=b'{"cwd":"/"}')
    )


def event(seq: int, kind: str = "message_received", run_id: str | None = None) -> EventRow:
    """Return an event with a distinct record."""
    return EventRow(seq, run_id, kind, f'{{"seq":{seq},"type":"{kind}"}}'.encode())


def batch(
    first: int,
    *types: str,
    session_id: str = SESSION,
    run: str | None = None,
    status: str | None = None,
    fence: int = 1,
    name: str | None = None,
    at: int = 2000,
    ledger: Iterable[LedgerRow] = (),
) -> Append:
    """Return a batch of one event of each type, from number `first`, all of one run or of none."""
    rows = tuple(event(first + place, each, run) for place, each in enumerate(types))
    runs = () if run is None or status is None else (RunRow(run, status, status.encode()),)
    return Append(
        session_id=session_id,
        fence=fence,
        batch=name or f"bat_{first}",
        first=first,
        at=at,
        rows=rows,
        runs=runs,
        ledger=tuple(ledger),
    )


async def put_blob(store: Store, data: bytes) -> str:
    """Store bytes with an event of a session of their own; return their sha256."""
    new = NewSession(session_id="ses_images", provider="echo", at=10**6, body=b"{}")
    try:
        last = (await store.session(new.session_id)).last_seq
    except UnknownId:
        last = 0
    made = batch(last + 1, "noted", session_id=new.session_id)
    await store.append(replace(made, new_session=new, blobs=(data,)))
    return hashlib.sha256(data).hexdigest()


async def put_snapshot(store: Store, snapshot: SnapshotRow) -> None:
    """Store a snapshot with an event of its session."""
    found = await store.session(snapshot.session_id)
    made = batch(found.last_seq + 1, "noted", session_id=snapshot.session_id)
    made = replace(made, fence=max(1, found.fence), snapshots=(snapshot,))
    await store.append(made)


def numbers(page: EventPage) -> list[int]:
    """Return the numbers of a page."""
    return [row.seq for row in page.rows]


def numbers_and_types(page: EventPage) -> list[tuple[int, str]]:
    """Return the numbers and types of a page."""
    return [(row.seq, row.type) for row in page.rows]


async def ended_run(store: Store, run: str = RUN, session_id: str = SESSION, first: int = 1) -> int:
    """Append a whole run with three streamed deltas in five events; return the last number."""
    types = ("message_streamed",) * 3
    start = batch(first, "run_started", *types, session_id=session_id, run=run, status="running")
    await store.append(start)
    end = batch(first + 4, "run_completed", session_id=session_id, run=run, status="completed")
    return (await store.append(end)).last_seq


def request(number: int, kind: str = "cancel") -> Request:
    """Return a request for a run."""
    return Request(request_id=f"req_{number}", kind=kind, target=RUN, at=1000, body=b"{}")


@contextmanager
def expect_refusal(*errors: type[Exception]) -> Generator[list[Exception]]:
    """Expect one of these errors, and add it to the yielded list."""
    caught: list[Exception] = []
    try:
        yield caught
    except errors as error:
        caught.append(error)
    assert {type(each) for each in caught} <= set(errors), f"{caught!r} is not one of {errors}"
    assert caught, f"none of {errors} was raised"
