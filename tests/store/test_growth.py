"""The costs of reading and appending do not grow with the log; pruning takes its own time."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import trio

from sessionmgr.store import Append, EventRow, NewSession, RunRow, open_sqlite_store
from sessionmgr.store.sqlite import journal, queries, retention
from sessionmgr.store.sqlite.connection import SqliteOptions, open_reader
from sessionmgr.testing.store_conformance.sample_records import numbers

EVENTS = 200_000
BATCH = 2000
LONG = "ses_long"
SHORT = "ses_short"


async def fill(path: Path) -> None:
    """Store a long session, of runs of a batch each, and a short one between its batches."""
    async with open_sqlite_store(path) as store:
        for session_id in (LONG, SHORT):
            new = NewSession(session_id=session_id, provider="p", at=0, body=b"{}")
            await store.create_session(new)
        for first in range(1, EVENTS, BATCH):
            run_id = f"run_{first}"
            types = ["message_streamed", "message_received"] * (BATCH // 2 - 1)
            kinds = ["run_started", *types, "run_completed"]
            await store.append(append(LONG, first, run_id, kinds))
            await store.append(append(SHORT, first // BATCH + 1, None, ["message_received"]))


def append(session_id: str, first: int, run_id: str | None, types: list[str]) -> Append:
    return Append(
        session_id=session_id,
        fence=1,
        batch=str(first),
        first=first,
        at=1,
        rows=tuple(
            EventRow(seq, run_id, kind, b'{"delta":"and so on"}')
            for seq, kind in enumerate(types, first)
        ),
        runs=() if run_id is None else (RunRow(run_id, "completed", b"{}"),),
    )


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("growth") / "s.db"
    trio.run(fill, path)
    return path


@pytest.fixture
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(open_reader(SqliteOptions(path=path))) as connection:
        yield connection


def effort(connection: sqlite3.Connection, read: Callable[[], object]) -> int:
    """Return how many hundred steps SQLite's virtual machine makes: the same on any computer."""
    steps: list[None] = []
    connection.set_progress_handler(lambda: steps.append(None), 100)
    read()
    connection.set_progress_handler(None, 100)
    return len(steps)


def page(
    connection: sqlite3.Connection,
    after: int,
    run_id: str | None = None,
    types: list[str] | None = None,
) -> Callable[[], object]:
    return lambda: queries.events(
        connection, LONG, after=after, run_id=run_id, types=types, limit=500
    )


def test_a_page_at_the_end_costs_what_a_page_at_the_start_costs(
    connection: sqlite3.Connection,
) -> None:
    at_start = effort(connection, page(connection, 0))
    at_end = effort(connection, page(connection, EVENTS - 600))
    assert at_start > 10
    assert at_end <= 1.2 * at_start


def test_a_run_at_the_end_costs_what_a_run_at_the_start_costs(
    connection: sqlite3.Connection,
) -> None:
    last_run = f"run_{EVENTS - BATCH + 1}"
    at_start = effort(connection, page(connection, 0, "run_1"))
    at_end = effort(connection, page(connection, 0, last_run))
    assert at_start > 10
    assert at_end <= 1.2 * at_start


def test_a_filtered_page_costs_the_same_everywhere(connection: sqlite3.Connection) -> None:
    types = ["message_received"]
    at_start = effort(connection, page(connection, 0, types=types))
    at_end = effort(connection, page(connection, EVENTS - 1200, types=types))
    assert at_end <= 1.2 * at_start


def test_no_read_or_append_looks_at_a_whole_table(path: Path) -> None:
    statements: list[str] = []
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.set_trace_callback(statements.append)
        for run_id in (None, "run_1"):
            for types in (None, ["message_streamed", "run_failed"]):
                queries.events(
                    connection, LONG, after=100, until=5000, run_id=run_id, types=types, limit=10
                )
        queries.session(connection, LONG)
        queries.run(connection, "run_1")
        statuses = ["running", "completed"]
        queries.runs(connection, session_id=LONG, statuses=statuses, limit=10, cursor=50)
        queries.runs(connection, statuses=["pending", "running"], limit=10)
        queries.resolve(connection, "run_1", None)
        connection.execute("BEGIN")
        journal.append_one(connection, append(LONG, EVENTS + 1, "run_new", ["run_completed"]))
        journal.append_one(connection, append(LONG, EVENTS + 1, "run_new", ["run_completed"]))
        retention.prune_some(connection, 5, None)
        connection.execute("ROLLBACK")
        connection.set_trace_callback(None)
        plans = [
            (statement, step)
            for statement in set(statements)
            if statement.split()[0] in {"SELECT", "UPDATE", "DELETE"}
            for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {statement}")
        ]
    assert len({statement for statement, _ in plans}) > 15
    looked_through = [
        (statement, step)
        for statement, step in plans
        # The index of living runs holds these alone.
        if (step.startswith("SCAN") and not step.endswith(("CONSTANT ROW", "runs_alive")))
        or "TEMP B-TREE" in step
    ]
    assert looked_through == []


async def test_pruning_a_long_log_leaves_reading_it_as_cheap(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    copy.write_bytes(path.read_bytes())
    async with open_sqlite_store(copy) as store:
        pruned = await store.prune(before=2)
        assert (pruned.events, pruned.runs) == (EVENTS // 2 - EVENTS // BATCH, EVENTS // BATCH)
        await store.append(append(LONG, EVENTS + 1, None, ["message_received"]))
        last = await store.events(LONG, after=EVENTS - 4)
        assert [row.type for row in last.rows][-3:] == [
            "message_received",
            "run_completed",
            "message_received",
        ]
        assert numbers(last)[-1] == EVENTS + 1
    with closing(open_reader(SqliteOptions(path=copy))) as connection:
        at_start = effort(connection, page(connection, 0))
        at_end = effort(connection, page(connection, EVENTS - 1000))
    assert at_end <= 1.5 * at_start
