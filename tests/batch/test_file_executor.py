"""Blocking work runs in a thread: a locked ledger or a hanging disk stops no clocks or pipes."""

import sqlite3
import threading
from collections import defaultdict
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from sessionmgr import Allow, ApprovalRequest, Decision, Job, open_manager, run_batch
from sessionmgr.batch import Batch, BatchDown, InProcessHost, LedgerUnusable, file_executor
from sessionmgr.batch.file_executor import BOUND, STEPS, FileExecutor
from sessionmgr.testing.scripted_provider import Ask, Hang, Say, ScriptedProvider, Step, scripted
from tests.batch.open_batch import job, results_of
from tests.batch.test_identity import statuses


class Gates:
    """An approver that blocks jobs at a tool until the test opens their gate."""

    def __init__(self) -> None:
        self.at: set[str] = set()
        """The tools that a job has reached."""
        self._opened: defaultdict[str, trio.Event] = defaultdict(trio.Event)

    def open(self, tool: str) -> None:
        self._opened[tool].set()

    async def __call__(self, asked: ApprovalRequest) -> Decision:
        self.at.add(asked.tool_name)
        await self._opened[asked.tool_name].wait()
        return Allow()


def gated(name: str) -> Job:
    """Return a job that ends when the gate of its name opens."""
    return job(name, Ask(tool=name), Say(text="x"))


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


async def pass_bound(clock: MockClock) -> None:
    """Let the time limit of the executor's work pass."""
    for _ in range(STEPS):
        await wait_all_tasks_blocked()
        clock.jump(BOUND / STEPS)
    await wait_all_tasks_blocked()


def asked(actor: type[ScriptedProvider]) -> int:
    """Return the number of started attempts."""
    return sum(entry.what == "prompt" for entry in actor.log)


async def test_a_locked_ledger_delays_results_and_nothing_else(tmp_path: Path) -> None:
    gates, names = Gates(), {f"j{n}" for n in range(6)}
    async with open_manager(adapters={"actor": scripted("actor")}) as manager:
        jobs = [gated(name) for name in sorted(names)]
        batch = run_batch(manager, jobs, out=tmp_path, approve=gates, concurrency=6)
        async with batch:
            await until(lambda: gates.at == names)
            with locked(tmp_path / "ledger.db"):
                for name in names:
                    gates.open(name)
                await until(lambda: told_to_wait(batch))  # the loop keeps running
                await until(lambda: not manager.status().running)  # the attempts ended, too
                assert not (tmp_path / "results.jsonl").read_bytes()
            summary = await batch.wait()
            assert summary.statuses == {"completed": 6}
            assert batch.progress().waits == ()
    assert len((tmp_path / "results.jsonl").read_bytes().splitlines()) == 6


async def stay_locked(
    batch: Batch, ledger: Path, gates: Gates, host: InProcessHost, clock: MockClock
) -> None:
    """Lock the ledger while two jobs run, for longer than its bound before the second ends."""
    async with batch:
        await until(lambda: gates.at == {"short", "long"})
        with locked(ledger):
            gates.open("short")
            await until(lambda: told_to_wait(batch))
            await pass_bound(clock)  # which the batch extends
            gates.open("long")
            await until(lambda: host.activity("long", 1) is None)
            await pass_bound(clock)
            await batch.wait()


async def test_a_ledger_that_stays_locked_cancels_nothing_and_is_named(
    real_clock: MockClock, tmp_path: Path
) -> None:
    actor, ledger, gates = scripted("actor"), tmp_path / "ledger.db", Gates()
    async with open_manager(adapters={"actor": actor}) as manager:
        jobs, host = [gated("short"), gated("long")], InProcessHost(manager, approve=gates)
        batch = run_batch(manager, jobs, out=tmp_path, host=host)
        with pytest.raises(BatchDown) as down:
            await stay_locked(batch, ledger, gates, host, real_clock)
        assert str(down.value).startswith(f"the batch stopped: cannot use {ledger} as")
        assert "the ledger is locked by another process, for 60 s now" in str(down.value)
        assert "run the same command again" in str(down.value)
        await results_of(run_batch(manager, jobs, out=tmp_path))
    assert statuses(tmp_path) == {"short": "completed", "long": "completed"}
    assert asked(actor) == 2  # no attempt was interrupted or repeated


async def test_a_stop_ends_running_jobs_although_the_ledger_is_locked(tmp_path: Path) -> None:
    actor, gates = scripted("actor"), Gates()
    async with open_manager(adapters={"actor": actor}) as manager:
        jobs = [gated("short"), *jobs_of(Hang(), number=3)]
        async with run_batch(manager, jobs, out=tmp_path, approve=gates) as batch:
            await until(lambda: gates.at and asked(actor) == 4)
            with locked(tmp_path / "ledger.db"):
                gates.open("short")
                await until(lambda: told_to_wait(batch))
                batch.stop("enough")
                await until(lambda: not manager.status().running)
            summary = await batch.wait()
        assert summary.statuses == {"completed": 1, "cancelled": 3}


async def test_leaving_the_block_ends_running_jobs_although_the_ledger_is_locked(
    tmp_path: Path,
) -> None:
    actor, gates = scripted("actor"), Gates()
    async with open_manager(adapters={"actor": actor}) as manager, trio.open_nursery() as nursery:
        jobs = [gated("short"), *jobs_of(Hang(), number=3)]
        batch = run_batch(manager, jobs, out=tmp_path, approve=gates)
        scope = trio.CancelScope()

        async def use() -> None:
            with scope:
                async with batch:
                    await batch.wait()

        nursery.start_soon(use)
        await until(lambda: gates.at and asked(actor) == 4)
        with locked(tmp_path / "ledger.db"):
            gates.open("short")
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


async def test_the_wait_for_a_hanging_disk_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(file_executor, "BOUND", 0.3)
    monkeypatch.setattr(file_executor, "GRACE", 0.1)
    thread, answered = FileExecutor("out/ledger.db"), threading.Event()
    try:
        with pytest.raises(LedgerUnusable, match=r"out/ledger\.db .* does not respond, for 0\.3 s"):
            await thread.run(answered.wait)
        with pytest.raises(LedgerUnusable, match="does not respond"):
            await thread.run(lambda: pytest.fail("nothing is done after what hangs"))
        began = trio.current_time()
        with pytest.raises(LedgerUnusable, match="does not respond"):
            await thread.read(lambda: pytest.fail("nor read"))
        assert trio.current_time() - began >= 0.1  # meanwhile the batch ends for that reason
    finally:
        answered.set()


async def test_the_wait_for_hanging_work_can_be_extended(
    real_clock: MockClock,
) -> None:
    thread, answered = FileExecutor("out/ledger.db"), threading.Event()

    async def extend() -> None:
        for _ in range(2 * STEPS):
            await wait_all_tasks_blocked()
            real_clock.jump(BOUND / STEPS)
            thread.extend_bound()
        answered.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(extend)
        assert await thread.run(answered.wait)
    assert thread.stall(trio.current_time()) is None


async def test_a_stop_of_our_own_process_is_no_hanging_disk(real_clock: MockClock) -> None:
    thread, answered = FileExecutor("out/ledger.db"), threading.Event()

    async def be_stopped() -> None:
        await wait_all_tasks_blocked()
        real_clock.jump(10 * BOUND)
        await wait_all_tasks_blocked()
        answered.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(be_stopped)
        assert await thread.run(answered.wait)


async def test_in_virtual_time_work_is_done_inline(autojump_clock: object) -> None:
    thread = FileExecutor("out/ledger.db")
    began = trio.current_time()
    assert await thread.run(threading.current_thread) is threading.current_thread()
    assert await thread.read(threading.current_thread) is threading.current_thread()
    assert await file_executor.in_thread(threading.current_thread) is threading.current_thread()
    assert not thread.keep_waiting()
    assert trio.current_time() == began


async def read_on(batch: Batch, ledger: Path, gates: Gates, give_up: Callable[[], object]) -> None:
    """Take one of many available results, and the others while the ledger is locked."""
    async with batch:
        results = aiter(batch)
        await until(lambda: gates.at and batch.progress().done == 70)
        await anext(results)
        with locked(ledger):
            gates.open("late")
            await until(lambda: told_to_wait(batch))
            give_up()
            async for _ in results:
                pass
            pytest.fail("it was over as if all were well")


async def test_a_reader_gets_only_the_error_of_an_abandoned_ledger(
    real_clock: MockClock, tmp_path: Path
) -> None:
    gates = Gates()

    async with (
        open_manager(adapters={"actor": scripted("actor")}) as manager,
        trio.open_nursery() as nursery,
    ):
        jobs = [*jobs_of(Say(text="x"), number=70), gated("late")]
        batch = run_batch(manager, jobs, out=tmp_path, concurrency=80, approve=gates)
        with pytest.raises(BatchDown, match="locked by another process"):
            await read_on(
                batch,
                tmp_path / "ledger.db",
                gates,
                lambda: nursery.start_soon(pass_bound, real_clock),
            )
