"""An exception in the host costs one attempt, and the batch does not wait for a dead host."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

import pytest
import trio

from sessionmgr import Manager, open_manager, run_batch
from sessionmgr.batch import AttemptSpec, BatchDown, HostLost, InProcessHost
from sessionmgr.model import FailureKind, RunStatus
from sessionmgr.store import MemoryStore
from sessionmgr.store.rows import Page, StoredRun
from sessionmgr.testing.scripted_provider import Fail, Hang, Say, Tool, Wait
from tests.batch.open_batch import collect, job, open_batch_setup, results_of


class Stumbling(MemoryStore):
    """Fails unexpectedly when a caller lists a session's runs."""

    async def runs(
        self,
        *,
        session_id: str | None = None,
        statuses: Collection[str] | None = None,
        provider: str | None = None,
        limit: int = 100,
        cursor: int | None = None,
    ) -> Page[StoredRun]:
        if session_id is not None:
            raise ZeroDivisionError("as planned")
        return await super().runs(statuses=statuses, provider=provider, limit=limit, cursor=cursor)


async def test_an_unexpected_exception_fails_its_attempt_alone(
    autojump_clock: object,
) -> None:
    async with open_batch_setup(store=Stumbling(), lawful=False) as setup:
        jobs = [job("odd", Tool(name="Bash"), Fail()), job("well", Wait(seconds=50), Say(text="x"))]
        batch = run_batch(setup.manager, jobs)
        found = {result.job: result for result in await collect(batch)}
    assert found["well"].status is RunStatus.COMPLETED
    odd = found["odd"]
    assert odd.failure is not None
    assert (odd.status, odd.failure.kind) == (RunStatus.FAILED, FailureKind.MANAGER_CRASHED)
    assert "ZeroDivisionError: as planned" in odd.failure.message
    assert odd.tool_calls.count == {"Bash": 1}  # the run's calls are still recorded


class Crashing(InProcessHost):
    """Crashes after a while."""

    async def serve(self, *, task_status: trio.TaskStatus[None]) -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(super().serve)
            task_status.started()
            await trio.sleep(10)
            raise ZeroDivisionError("as planned")


async def test_a_batch_does_not_wait_for_the_reports_of_a_dead_host(autojump_clock: object) -> None:
    async with open_batch_setup() as setup:
        host = Crashing(setup.manager)
        with pytest.raises(BatchDown, match="as planned"):
            await collect(run_batch(setup.manager, [job("a", Hang())], host=host))
        assert trio.current_time() < 20
        await trio.sleep(10)
        assert setup.manager.status().running == 0


async def test_a_host_that_is_over_takes_nothing_up() -> None:
    async with open_manager() as manager:
        host = InProcessHost(manager)
        async with trio.open_nursery() as nursery:
            await nursery.start(host.serve)
            nursery.cancel_scope.cancel()
        for ask in (host.restore, lambda: host.follow(0)):
            with pytest.raises(Exception, match="ended or crashed"):
                await ask()


class LosingHost(InProcessHost):
    """Fails at every attempt before it starts, and works again after a restart."""

    def __init__(self, manager: Manager, losing: Callable[[AttemptSpec], bool]) -> None:
        super().__init__(manager)
        self._losing: Final = losing

    async def submit(self, work: AttemptSpec) -> None:
        if self._losing(work):
            await trio.lowlevel.checkpoint()
            raise HostLost("as planned")
        await super().submit(work)


async def test_a_job_that_never_began_before_a_stop_waits_for_the_next_run(
    tmp_path: Path, autojump_clock: object
) -> None:
    async with open_batch_setup() as setup:

        def lost(_: AttemptSpec) -> bool:
            batch.stop("Ctrl-C")
            return True

        host = LosingHost(setup.manager, lost)
        batch = run_batch(setup.manager, [job("a")], host=host, out=tmp_path / "out")
        assert await results_of(batch) == {}
        assert batch.summary().statuses == {"not_run": 1}
        assert batch.summary().left == 1
        again = run_batch(setup.manager, [job("a")], out=tmp_path / "out")
        assert await results_of(again) == {"a": "completed"}


async def test_a_retry_that_never_began_before_a_stop_leaves_the_outcome_of_the_last_attempt(
    autojump_clock: object,
) -> None:
    failing = Fail(kind=FailureKind.OVERLOADED, message="too busy", retryable=True)
    async with open_batch_setup() as setup:

        def lost(work: AttemptSpec) -> bool:
            if work.attempt == 2:
                batch.stop("Ctrl-C")
            return work.attempt == 2

        batch = run_batch(setup.manager, [job("a", failing)], host=LosingHost(setup.manager, lost))
        (result,) = await collect(batch)
    assert result.failure is not None
    assert (result.attempt, result.failure.kind) == (1, FailureKind.OVERLOADED)
    assert "too busy" in result.failure.message


async def test_a_job_that_never_began_begins_once_its_host_is_there_again(
    autojump_clock: object,
) -> None:
    async with open_batch_setup() as setup:
        host = LosingHost(setup.manager, lambda work: work.attempt <= 2)
        (result,) = await collect(run_batch(setup.manager, [job("a")], host=host, retries=0))
    assert (result.status, result.attempt) == (RunStatus.COMPLETED, 3)
