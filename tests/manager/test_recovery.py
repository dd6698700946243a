"""What a manager that died has left open in one session is ended whole, and in order."""

from pathlib import Path

from trio.testing import MockClock

from sessionmgr.manager.identity import Presence
from sessionmgr.model import Run, RunStatus, encode_json
from sessionmgr.store import MemoryStore, Store, open_sqlite_store
from sessionmgr.store.row import Append, RunRow
from sessionmgr.testing.scripted import Say
from tests.manager.house import open_house, play
from tests.manager.test_supervision import begun

COUNT = 250


async def leave_many(store: Store) -> list[str]:
    """Leave a run that is on, and many that wait behind it, as a manager that has died."""
    owner = Presence("bat_that_died").owner
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
        async with open_house(store=store, lawful=False) as house:
            assert await ended(store) == names
            runs = await house.manager.settled("ses_long")
            assert [run.id for run in runs] == names[::-1]
            assert {run.status for run in runs} == {RunStatus.FAILED}


async def test_no_run_that_was_left_waits_beside_a_new_one(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    async with open_house(store=store, lawful=False) as house:
        names = await leave_many(store)  # after the manager has looked
        session = await house.manager.session("ses_long")
        run = await session.submit(play(Say(text="new")))
        assert await ended(store) == names
        assert (await run.result()).text == "new"
