"""Reruns and other batches on the same store obey a provider's pause."""

from pathlib import Path

import trio
from trio.testing import MockClock

from sessionmgr import run_batch
from sessionmgr.batch import JobResult
from sessionmgr.manager import ProviderPause
from sessionmgr.model import RunStatus
from sessionmgr.store import MemoryStore, StoreBusy
from sessionmgr.testing.scripted_provider import RateLimited, Say, Step, Wait
from tests.batch.open_batch import BatchSetup, collect, job, open_batch_setup, virtual_now


def limited_at_first(prompt: str, attempt: int) -> tuple[Step, ...]:
    return (RateLimited(),) if prompt == "a" else (Say(text="well"),)


async def pause_one(setup: BatchSetup, out: Path | None = None) -> None:
    """Make a batch hit the limit, and stop it during the pause."""
    async with run_batch(setup.manager, [job("a")], out=out) as batch:
        await trio.sleep(5)
        assert "actor" in batch.progress().paused
        batch.stop()
        await batch.wait()


async def test_a_rerun_heeds_the_pause_of_the_batch_before_it(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    store = MemoryStore()
    async with open_batch_setup(store=store, scripts=limited_at_first) as setup:
        await pause_one(setup, tmp_path)
        (pause,) = (await setup.manager.provider_pauses()).values()
    begun = virtual_now()
    assert pause.until - begun > 800
    async with open_batch_setup(store=store) as setup:
        async with run_batch(setup.manager, [job("a")], out=tmp_path) as batch:
            await trio.sleep(60)
            progress = batch.progress()
            assert (progress.running, progress.pauses["actor"].why) == (0, pause.why)
            await batch.wait()
        assert len(setup.times()) == 1
        assert abs(virtual_now() - pause.until) < 2
        assert await setup.manager.provider_pauses() == {}


async def test_a_running_batch_obeys_pauses_of_another_one(autojump_clock: MockClock) -> None:
    async with open_batch_setup() as setup:
        jobs = [job("first", Wait(seconds=100), Say(text="x")), job("second", Say(text="x"))]
        async with run_batch(setup.manager, jobs, concurrency=1) as batch:
            await trio.sleep(1)
            until = setup.manager.now() + 1000
            await setup.manager.pause_provider("actor", ProviderPause(until=until, why="429"))
            await trio.sleep(31)
            assert batch.progress().pauses["actor"].why == "429"
            summary = await batch.wait()
        assert summary.statuses == {"completed": 2}
        assert 998 < setup.times()[1] - setup.times()[0] < 1003


async def test_a_pause_can_be_ignored(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    async with open_batch_setup(store=store, scripts=limited_at_first) as setup:
        await pause_one(setup)
        begun = trio.current_time()
        batch = run_batch(setup.manager, [job("b")], ignore_pauses=True)
        found: list[JobResult] = await collect(batch)
        assert [each.status for each in found] == [RunStatus.COMPLETED]
        assert trio.current_time() - begun < 5
        assert await setup.manager.provider_pauses() == {}


async def test_a_run_that_goes_through_after_a_pause_ends_it_for_all(
    autojump_clock: MockClock,
) -> None:
    left: list[tuple[Step, ...]] = [(RateLimited(),)]

    def scripts(prompt: str, attempt: int) -> tuple[Step, ...]:
        return left.pop() if left else (Say(text="well"),)

    async with open_batch_setup(scripts=scripts) as setup:
        async with run_batch(setup.manager, [job("a")]) as batch:
            await trio.sleep(5)
            assert "actor" in await setup.manager.provider_pauses()
            await batch.wait()
        assert await setup.store.backoffs() == {}


async def test_a_pause_that_cannot_be_read_is_passed_over(autojump_clock: MockClock) -> None:
    async with open_batch_setup() as setup:
        await setup.store.put_backoff("actor", b"{}")
        assert await setup.manager.provider_pauses() == {}


async def test_a_store_that_cannot_share_pauses_holds_up_no_job(autojump_clock: MockClock) -> None:
    class Unshared(MemoryStore):
        async def backoffs(self) -> dict[str, bytes]:
            await trio.lowlevel.checkpoint()
            raise StoreBusy("runs.db")

    async with open_batch_setup(store=Unshared()) as setup:
        (result,) = await collect(run_batch(setup.manager, [job("a")]))
    assert result.status is RunStatus.COMPLETED
