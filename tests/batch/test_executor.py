"""Blocking work runs in a thread: a locked ledger or a hanging disk stops no clocks or pipes."""

import sqlite3
import threading
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import trio

from sessionmgr import Job, open_manager, run_batch
from sessionmgr.batch import Batch, conductor, executor
from sessionmgr.batch.executor import Executor
from sessionmgr.errors import BatchDown, LedgerUnusable
from sessionmgr.testing.scripted import Hang, Say, Step, Wait, scripted
from tests.batch.hall import job, results_of
from tests.batch.test_identity import statuses


@contextmanager
def locked(ledger: Path) -> Generator[None, None, None]:
    """Lock a ledger as `sqlite3` does with an open transaction."""
    with closing(sqlite3.connect(ledger, isolation_level=None, timeout=30)) as connection:
        connection.execute("begin immediate")
        yield
        connection.execute("rollback")


async def until(condition: Callable[[], object]) -> None:
    with trio.fail_after(60):
        await trio.lowlevel.checkpoint()
        while not condition():  # there is no event for it  # noqa: ASYNC110
            await trio.sleep(0.01)


def told_to_wait(batch: Batch) -> bool:
    told = [(each.what, each.why) for each in batch.progress().waits]
    return told == [("ledger", "locked by another process")]


def jobs_of(*steps: Step, number: int = 6) -> list[Job]:
    return [job(f"j{n}", *steps) for n in range(number)]


async def test_a_locked_ledger_delays_results_and_nothing_else(tmp_path: Path) -> None:
    actor = scripted("actor")
    async with open_manager(adapters={"actor": actor}) as manager:
        jobs = jobs_of(Wait(seconds=0.1), Say(text="x"))
        async with run_batch(manager, jobs, out=tmp_path) as batch:
            with locked(tmp_path / "ledger.db"):
                await until(lambda: told_to_wait(batch))  # the loop keeps running
                await until(lambda: not manager.status().running)  # the running attempts ended, too
                assert not (tmp_path / "results.jsonl").read_bytes()
            summary = await batch.wait()
            assert summary.statuses == {"completed": 6}
            assert batch.progress().waits == ()
    assert len((tmp_path / "results.jsonl").read_bytes().splitlines()) == 6


async def lock_when_all_are_on(batch: Batch, ledger: Path, running: Callable[[], int]) -> None:
    async with batch:
        await until(lambda: running() == 2)
        with locked(ledger):
            await batch.wait()


async def test_a_ledger_that_stays_locked_cancels_nothing_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "BOUND", 0.6)
    monkeypatch.setattr(conductor, "RENEW_EVERY", 0.1)
    actor, ledger = scripted("actor"), tmp_path / "ledger.db"
    async with open_manager(adapters={"actor": actor}) as manager:
        jobs = [job("short", Wait(seconds=0.3)), job("long", Wait(seconds=2), Say(text="x"))]
        batch = run_batch(manager, jobs, out=tmp_path)
        with pytest.raises(BatchDown) as down:
            await lock_when_all_are_on(batch, ledger, lambda: manager.status().running)
        assert str(down.value).startswith(f"the batch gave up: {ledger} cannot be used")
        assert "the ledger is locked by another process, for 0.6 s now" in str(down.value)
        assert "run the same command again" in str(down.value)
        await results_of(run_batch(manager, jobs, out=tmp_path))
    assert statuses(tmp_path) == {"short": "completed", "long": "completed"}
    assert (
        sum(entry.what == "prompt" for entry in actor.diary) == 2
    )  # no attempt was interrupted or repeated


async def test_a_stop_ends_what_is_on_though_the_ledger_is_locked(tmp_path: Path) -> None:
    actor = scripted("actor")
    async with open_manager(adapters={"actor": actor}) as manager:
        jobs = [job("short", Wait(seconds=0.2)), *jobs_of(Hang(), number=3)]
        async with run_batch(manager, jobs, out=tmp_path) as batch:
            await until(lambda: manager.status().running == 4)
            with locked(tmp_path / "ledger.db"):
                await until(lambda: told_to_wait(batch))
                batch.stop("enough")
                await until(lambda: not manager.status().running)
            summary = await batch.wait()
        assert summary.statuses == {"completed": 1, "cancelled": 3}


async def test_leaving_the_block_ends_what_is_on_though_the_ledger_is_locked(
    tmp_path: Path,
) -> None:
    actor = scripted("actor")
    async with open_manager(adapters={"actor": actor}) as manager, trio.open_nursery() as nursery:
        jobs = [job("short", Wait(seconds=0.2)), *jobs_of(Hang(), number=3)]
        batch = run_batch(manager, jobs, out=tmp_path)
        scope = trio.CancelScope()

        async def use() -> None:
            with scope:
                async with batch:
                    await batch.wait()

        nursery.start_soon(use)
        await until(lambda: manager.status().running == 4)
        with locked(tmp_path / "ledger.db"):
            await until(lambda: told_to_wait(batch))
            scope.cancel()
            await until(lambda: not manager.status().running)
    assert batch.summary().statuses == {"completed": 1, "cancelled": 3}


async def test_a_ledger_that_is_locked_at_first_is_waited_for(tmp_path: Path) -> None:
    async with open_manager(adapters={"actor": scripted("actor")}) as manager:
        await results_of(run_batch(manager, [job("a")], out=tmp_path))
        batch = run_batch(manager, [job("a"), job("b")], out=tmp_path)
        async with trio.open_nursery() as nursery:
            with locked(tmp_path / "ledger.db"):
                nursery.start_soon(results_of, batch)
                await until(lambda: told_to_wait(batch))
        assert batch.summary().statuses == {"completed": 2}


async def test_a_ledger_that_is_locked_at_first_is_left_at_once(tmp_path: Path) -> None:
    async with open_manager(adapters={"actor": scripted("actor")}) as manager:
        await results_of(run_batch(manager, [job("a")], out=tmp_path))
        batch = run_batch(manager, [job("b")], out=tmp_path)
        with locked(tmp_path / "ledger.db"):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(results_of, batch)
                await until(lambda: told_to_wait(batch))
                nursery.cancel_scope.cancel()
        assert await results_of(run_batch(manager, [job("a")], out=tmp_path)) == {}


async def test_a_disk_that_hangs_is_given_up_after_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(executor, "BOUND", 0.3)
    monkeypatch.setattr(executor, "GRACE", 0.1)
    thread, answered = Executor("out/ledger.db"), threading.Event()
    try:
        with pytest.raises(LedgerUnusable, match=r"out/ledger\.db .* does not answer, for 0\.3 s"):
            await thread.run(answered.wait)
        with pytest.raises(LedgerUnusable, match="does not answer"):
            await thread.run(lambda: pytest.fail("nothing is done after what hangs"))
        with pytest.raises(LedgerUnusable, match="does not answer"):
            await thread.read(lambda: pytest.fail("nor read"))
    finally:
        answered.set()


async def test_what_hangs_is_waited_for_as_long_as_that_is_extended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(executor, "BOUND", 0.3)
    thread, answered = Executor("out/ledger.db"), threading.Event()

    async def extend() -> None:
        for _ in range(10):
            await trio.sleep(0.1)
            thread.extend()
        answered.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(extend)
        assert await thread.run(answered.wait)
    assert thread.waits(trio.current_time()) is None


async def test_in_virtual_time_work_is_done_inline(autojump_clock: object) -> None:
    thread = Executor("out/ledger.db")
    began = trio.current_time()
    assert await thread.run(threading.current_thread) is threading.current_thread()
    assert await thread.read(threading.current_thread) is threading.current_thread()
    assert await executor.in_thread(threading.current_thread) is threading.current_thread()
    assert not thread.keep_waiting()
    assert trio.current_time() == began


async def slowly(batch: Batch, ledger: Path, running: Callable[[], int]) -> None:
    """Take one of many available results, and the others while the ledger is locked."""
    async with batch:
        results = aiter(batch)
        await until(lambda: batch.progress().done == 70)
        await anext(results)
        with locked(ledger):
            await until(lambda: not running())
            await until(lambda: told_to_wait(batch))
            async for _ in results:
                pass
            pytest.fail("it was over as if all were well")


async def test_who_reads_on_when_the_ledger_is_given_up_is_told_of_that_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "BOUND", 1.5)
    actor = scripted("actor")
    async with open_manager(adapters={"actor": actor}) as manager:
        jobs = [*jobs_of(Say(text="x"), number=70), job("late", Wait(seconds=3))]
        batch = run_batch(manager, jobs, out=tmp_path, concurrency=80)
        with pytest.raises(BatchDown, match="locked by another process"):
            await slowly(batch, tmp_path / "ledger.db", lambda: manager.status().running)
