"""Runs of a dead manager in one session are ended completely and in order."""

from pathlib import Path

from msgspec.structs import replace
from trio.testing import MockClock

from sessionmgr.manager.owner import ManagerOwner
from sessionmgr.model import MessageReceived, Run, RunStatus, encode_event, encode_json
from sessionmgr.store import MemoryStore, Store, open_sqlite_store
from sessionmgr.store.rows import Append, EventRow, RunRow
from sessionmgr.testing.scripted_provider import Say
from tests.manager.harness import open_harness, run_scripted
from tests.manager.test_supervision import begun

COUNT = 250


async def leave_many(store: Store) -> list[str]:
    """Leave an active run and many queued ones, as a dead manager does."""
    owner = ManagerOwner("bat_that_died").owner
    lease = await store.acquire("ses_long", owner, now=0, ttl=90_000)
    first = begun("ses_long", "run_000", lease.fence)
    names = [f"run_{n:03}" for n in range(COUNT)]
    waiting = tuple(
        RunRow(name, "pending", encode_json(Run(id=name, session_id="ses_long", provider="actor")))
        for name in names[1:]
    )
    await store.append(
        Append(
            session_id="ses_long",
            fence=lease.fence,
            batch="b",
            first=1,
            at=0,
            rows=first.rows,
            runs=(*first.runs, *waiting),
            new_session=first.new_session,
        )
    )
    return names


async def ended(store: Store) -> list[str | None]:
    page = await store.events("ses_long", types=["run_failed"])
    return [row.run_id for row in page.rows]


async def test_all_runs_that_were_left_in_a_session_are_ended_the_oldest_first(
    tmp_path: Path,
) -> None:
    async with open_sqlite_store(tmp_path / "x.db") as store:
        names = await leave_many(store)
        async with open_harness(store=store, lawful=False) as house:
            assert await ended(store) == names
            runs = await house.manager.settled("ses_long")
            assert [run.id for run in runs] == names[::-1]
            assert {run.status for run in runs} == {RunStatus.FAILED}


async def test_no_run_that_was_left_waits_beside_a_new_one(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    async with open_harness(store=store, lawful=False) as house:
        names = await leave_many(store)  # after the manager has looked
        session = await house.manager.session("ses_long")
        run = await session.submit(run_scripted(Say(text="new")))
        assert await ended(store) == names
        assert (await run.result()).text == "new"


async def test_a_run_that_was_left_lasted_until_its_last_event_and_says_how_it_was_interrupted(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore()
    owner = replace(ManagerOwner("bat_that_died").owner, pid=10982)
    lease = await store.acquire("ses_1", owner, now=0, ttl=90_000)
    await store.append(begun("ses_1", "run_1", lease.fence))
    said = MessageReceived(content="so far").stamped(
        seq=3, at="2026-01-01T00:00:09.000Z", session_id="ses_1", run_id="run_1", provider="actor"
    )
    row = EventRow(3, "run_1", said.type, encode_event(said))
    await store.append(
        Append(session_id="ses_1", fence=lease.fence, batch="c", first=3, at=9000, rows=(row,))
    )
    async with open_harness(store=store, lawful=False) as house:
        result = await house.manager.result("run_1")
    assert result.failure is not None
    assert result.failure.message == "interrupted when process 10982 died"
    assert (result.ended_at, result.duration) == ("2026-01-01T00:00:09.000Z", 9.0)
