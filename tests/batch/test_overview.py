"""The overview of a batch that any process reads from its directory."""

from pathlib import Path

import trio

from sessionmgr import Allow, ApprovalRequest, Decision, run_batch
from sessionmgr.batch import BatchOverview, ended, read_batch, read_failures
from sessionmgr.testing.scripted_provider import Ask, Fail, Say
from tests.batch.open_batch import job, open_batch_setup


async def test_an_overview_has_the_counts_and_the_process_of_a_running_batch(
    autojump_clock: object, tmp_path: Path
) -> None:
    asked = trio.Event()
    seen: list[BatchOverview | None] = []
    jobs = [job("a", Say(text="x")), job("b", Fail(message="no luck")), job("c", Ask(tool="rm"))]

    async def approve(_: ApprovalRequest) -> Decision:
        asked.set()
        await trio.sleep(1000)
        return Allow()

    async with open_batch_setup() as setup:
        batch = run_batch(
            setup.manager, jobs, out=tmp_path, retries=0, concurrency=3, approve=approve
        )
        async with batch:
            results = aiter(batch)
            for _ in range(2):
                await anext(results)
            await asked.wait()
            seen.append(read_batch(tmp_path))
            batch.stop()
            await batch.wait()
    (overview,) = seen
    assert overview is not None
    assert overview.batch == batch.id
    assert overview.pid is not None
    assert [(each.job.id, each.number) for each in overview.running] == [("c", 1)]
    assert ended(overview.states) == (1, 1, 0)
    over = read_batch(tmp_path)
    assert over is not None
    assert (over.holder, over.pid, over.running) == (None, None, ())
    assert sum(ended(over.states)) == 3
    assert over.changed_at >= over.started_at
    (failure,) = read_failures(tmp_path, 10)
    assert (failure.job, failure.failure and failure.failure.message) == ("b", "no luck")


def test_a_directory_without_a_batch_has_no_overview_and_stays_as_it_is(tmp_path: Path) -> None:
    assert read_batch(tmp_path) is None
    assert read_batch(tmp_path / "nowhere") is None
    assert not list(tmp_path.iterdir())


async def test_to_read_an_overview_writes_nothing_in_the_lock(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with (
        open_batch_setup() as setup,
        run_batch(setup.manager, [job("a")], out=tmp_path) as batch,
    ):
        await batch.wait()
    before = (tmp_path / "lock").read_text()
    assert read_batch(tmp_path) is not None
    assert (tmp_path / "lock").read_text() == before
