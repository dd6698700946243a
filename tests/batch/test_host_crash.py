"""An exception in the host costs one attempt, and the batch does not wait for a dead host."""

from collections.abc import Collection

import pytest
import trio

from sessionmgr import open_manager, run_batch
from sessionmgr.batch import InProcessHost
from sessionmgr.errors import BatchDown
from sessionmgr.model import FailureKind, RunStatus
from sessionmgr.store import MemoryStore
from sessionmgr.store.row import Page, StoredRun
from sessionmgr.testing.scripted import Fail, Hang, Say, Tool, Wait
from tests.batch.hall import collect, job, open_hall


class Stumbling(MemoryStore):
    """Fails unexpectedly when it is asked for a session's runs."""

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


async def test_an_exception_that_nobody_expects_fails_its_attempt_alone(
    autojump_clock: object,
) -> None:
    async with open_hall(store=Stumbling(), lawful=False) as hall:
        jobs = [job("odd", Tool(name="Bash"), Fail()), job("well", Wait(seconds=50), Say(text="x"))]
        batch = run_batch(hall.manager, jobs)
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


async def test_nobody_waits_for_the_reports_of_a_dead_host(autojump_clock: object) -> None:
    async with open_hall() as hall:
        host = Crashing(hall.manager)
        with pytest.raises(BatchDown, match="as planned"):
            await collect(run_batch(hall.manager, [job("a", Hang())], host=host))
        assert trio.current_time() < 20
        await trio.sleep(10)
        assert hall.manager.status().running == 0


async def test_a_host_that_is_over_takes_nothing_up() -> None:
    async with open_manager() as manager:
        host = InProcessHost(manager)
        async with trio.open_nursery() as nursery:
            await nursery.start(host.serve)
            nursery.cancel_scope.cancel()
        for ask in (host.restore, lambda: host.follow(0)):
            with pytest.raises(Exception, match="ended or crashed"):
                await ask()
