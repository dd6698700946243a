"""Laws of a batch wherever its jobs run: in this process, or in a child that may die."""

import os
import signal
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from sessionmgr import Allow, ApprovalRequest, Decision, Deny, Manager, open_manager, run_batch
from sessionmgr.adapter import Approve
from sessionmgr.batch import (
    AttemptResult,
    AttemptSpec,
    Batch,
    BatchDown,
    ChildHost,
    Host,
    InProcessHost,
    JobResult,
    Report,
)
from sessionmgr.batch.host import LEASE
from sessionmgr.model import FailureKind, RunStatus
from sessionmgr.store import open_sqlite_store
from sessionmgr.testing.invariants import broken_laws
from sessionmgr.testing.scripted_provider import Ask, Fail, Hang, Say, Tool, Use, Wait
from tests.batch.child_adapters import Actor
from tests.batch.open_batch import job

ADAPTERS = {"actor": "tests.batch.child_adapters:Actor"}


@dataclass
class HostSetup:
    manager: Manager
    new_host: Callable[[], Host]
    out: Path


async def approve(asked: ApprovalRequest) -> Decision:
    await trio.lowlevel.checkpoint()
    return Allow() if asked.tool_name == "Read" else Deny(reason="no")


@asynccontextmanager
async def open_host_setup(
    path: Path, kind: str, approve: Approve = approve
) -> AsyncGenerator[HostSetup, None]:
    store = path / "store.db"
    async with open_manager(store=store, adapters={"actor": Actor}) as manager:

        def new_host() -> Host:
            if kind == "child":
                return ChildHost(store, adapters=ADAPTERS, approve=approve)
            return InProcessHost(manager, approve=approve)

        yield HostSetup(manager, new_host, path / "out")
    async with open_sqlite_store(store) as read:
        broken = await broken_laws(read)
    assert not broken, broken


async def until(batch: Batch, doing: set[str]) -> None:
    """Poll the progress, as a display does, until the jobs have these activities."""
    with trio.fail_after(60):
        await trio.lowlevel.checkpoint()
        while {each.doing for each in batch.progress().jobs} != doing:  # noqa: ASYNC110
            await trio.sleep(0.02)  # no event reports this


both = pytest.mark.parametrize("kind", ["here", "child"])


@both
async def test_jobs_end_with_their_results(tmp_path: Path, kind: str) -> None:
    async with open_host_setup(tmp_path, kind) as place:
        jobs = [job(f"j{n}", Say(text=f"hello {n}"), Use(input=n, usd=0.5)) for n in range(20)]
        jobs.append(job("bad", Fail(message="no")))
        batch = run_batch(place.manager, jobs, host=place.new_host(), out=place.out)
        async with batch as results:
            found = {result.job: result async for result in results}
    assert {found[f"j{n}"].text for n in range(20)} == {f"hello {n}" for n in range(20)}
    assert found["bad"].status is RunStatus.FAILED
    summary = batch.summary()
    assert summary.statuses == {"completed": 20, "failed": 1}
    assert (summary.tokens.input, summary.cost.usd) == (190, 10.0)
    assert len((place.out / "results.jsonl").read_text().splitlines()) == 21


@both
async def test_a_question_is_answered(tmp_path: Path, kind: str) -> None:
    async with open_host_setup(tmp_path, kind) as place:
        jobs = [job("a", Ask(tool="Read", output="x"), Ask(tool="Bash", output="y"))]
        async with run_batch(place.manager, jobs, host=place.new_host()) as results:
            (result,) = [each async for each in results]
    assert result.tool_calls.count == {"Read": 1, "Bash": 1}
    assert [denial.reason for denial in result.permission_denials] == ["no"]


@both
async def test_running_jobs_are_shown_and_can_be_stopped(tmp_path: Path, kind: str) -> None:
    async with open_host_setup(tmp_path, kind) as place:
        tool = Tool(name="Bash", input={"command": "npm test"}, takes=60)
        jobs = [job("a", tool), job("b", Hang()), job("c", Hang())]
        batch = run_batch(place.manager, jobs, host=place.new_host(), concurrency=2)
        async with batch as results:
            await until(batch, {"Bash: npm test", "thinking"})
            batch.stop("enough")
            ended = [(each.job, each.status, each.detail) async for each in results]
    assert sorted(ended) == [("a", "cancelled", "enough"), ("b", "cancelled", "enough")]
    assert batch.summary().statuses == {"cancelled": 2, "not_run": 1}


@both
async def test_an_interrupted_job_continues_in_the_next_run(tmp_path: Path, kind: str) -> None:
    jobs = [job("a", Say(text="x"), Wait(seconds=60))]
    async with open_host_setup(tmp_path, kind) as place:
        first = run_batch(place.manager, jobs, host=place.new_host(), out=place.out)
        async with first as batch:
            await until(batch, {"writing"})
    async with open_host_setup(tmp_path, kind) as place:
        second = run_batch(place.manager, jobs, host=place.new_host(), out=place.out)
        async with second as results:
            (result,) = [each async for each in results]
    assert (result.text, result.attempt) == ("continue", 2)
    assert result.resumed_from is not None


@both
async def test_a_refusal_at_the_start_is_a_result(tmp_path: Path, kind: str) -> None:
    place_of_job = tmp_path / "work"
    place_of_job.mkdir()
    removed = trio.Event()

    async def wait(_: ApprovalRequest) -> Decision:
        await removed.wait()
        return Allow()

    async with open_host_setup(tmp_path, kind, wait) as place:
        jobs = [job("a", Ask(tool="Read")), job("b", Say(text="x"), cwd=str(place_of_job))]
        batch = run_batch(place.manager, jobs, host=place.new_host(), concurrency=1)
        async with batch as results:
            place_of_job.rmdir()
            removed.set()
            found = {each.job: each async for each in results}
    failure = found["b"].failure
    assert failure is not None
    assert failure.kind is FailureKind.CONFIG_INVALID
    assert (found["a"].status, found["b"].id) == ("completed", "")


async def test_a_child_that_is_killed_costs_no_job(tmp_path: Path) -> None:
    jobs = [job(f"j{n}", Say(text="hi"), Wait(seconds=0.05 + n % 5 / 10)) for n in range(40)]
    # This attempt certainly runs when the child dies, however late; a message resumes it.
    jobs[0] = job("j0", Say(text="hi"), Wait(seconds=60))
    found: list[JobResult] = []
    async with open_host_setup(tmp_path, "child") as place:
        host = ChildHost(tmp_path / "store.db", adapters=ADAPTERS)
        batch = run_batch(place.manager, jobs, host=host, out=place.out, concurrency=8, retries=5)
        async with batch as results:
            async for result in results:
                found.append(result)
                if len(found) in (5, 20):
                    os.kill(host.pid, signal.SIGKILL)
    runs = await all_runs(tmp_path / "store.db")
    assert sorted(result.job for result in found) == sorted(each.id for each in jobs)
    assert {result.status for result in found} == {RunStatus.COMPLETED}
    assert runs.count("completed") == len(jobs)
    assert max(result.attempt for result in found) > 1


async def all_runs(store: Path) -> list[str]:
    async with open_sqlite_store(store) as read:
        page = await read.runs(limit=10_000)
    return [row.status for row in page.rows]


async def test_a_job_whose_host_is_killed_in_a_tool_call_is_resumed_with_a_message(
    tmp_path: Path,
) -> None:
    jobs = [job("a", Tool(name="Bash", takes=60))]
    async with open_host_setup(tmp_path, "child") as place:
        host = ChildHost(tmp_path / "store.db", adapters=ADAPTERS)
        async with run_batch(place.manager, jobs, host=host) as results:
            await until(results, {"Bash"})
            os.kill(host.pid, signal.SIGKILL)
            (result,) = [each async for each in results]
    assert (result.status, result.attempt) == (RunStatus.COMPLETED, 2)
    assert result.resumed_from is not None
    assert "a tool call was running (Bash)" in result.text  # it is echoed


async def test_a_job_whose_host_is_killed_within_a_tool_is_not_started_over_unasked(
    tmp_path: Path,
) -> None:
    jobs = [job("a", Tool(name="Bash", takes=60))]
    async with open_host_setup(tmp_path, "child") as place:
        host = ChildHost(tmp_path / "store.db", adapters=ADAPTERS)
        async with run_batch(place.manager, jobs, host=host, retry_from="ask") as results:
            await until(results, {"Bash"})
            os.kill(host.pid, signal.SIGKILL)
            (result,) = [each async for each in results]
    assert result.failure is not None
    assert (result.failure.kind, result.attempt) == (FailureKind.MANAGER_CRASHED, 1)
    assert "--retry-from fresh starts it over" in result.failure.message
    assert result.side_effects


async def test_a_child_imports_nothing_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("msgspec", "sessionmgr", "json"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    async with (
        open_host_setup(tmp_path, "child") as place,
        run_batch(place.manager, [job("a")], host=place.new_host()) as results,
    ):
        (result,) = [each async for each in results]
    assert result.status == RunStatus.COMPLETED
    assert not (tmp_path / "ran").exists()


async def test_a_child_that_does_not_come_up_ends_the_batch(tmp_path: Path) -> None:
    async with open_host_setup(tmp_path, "child") as place:
        host = ChildHost(
            tmp_path / "store.db", adapters={"actor": "tests.batch.child_adapters:Nobody"}
        )
        with pytest.raises(BatchDown, match="Nobody"):
            async with run_batch(place.manager, [job("a")], host=host):
                await trio.sleep_forever()


class LateHost(InProcessHost):
    """Reports the end of every attempt again, for the attempt before, and once more."""

    async def follow(self, after: int) -> Sequence[Report]:
        reports = await super().follow(after)
        return [
            (number, each)
            for number, ended in reports
            for each in (_before(ended), ended, _before(ended), ended)
        ]


def _before(ended: AttemptResult) -> AttemptResult:
    return AttemptResult(job=ended.job, attempt=ended.attempt - 1, result=ended.result)


async def test_a_late_report_changes_nothing(tmp_path: Path) -> None:
    async with open_host_setup(tmp_path, "here") as place:
        failing = Fail(kind=FailureKind.OVERLOADED, retryable=True)
        jobs = [job("good", Say(text="x")), job("bad", failing)]
        batch = run_batch(place.manager, jobs, host=LateHost(place.manager), retries=0)
        async with batch as results:
            found = [(each.job, each.status, each.attempt) async for each in results]
    assert sorted(found) == [("bad", "failed", 1), ("good", "completed", 1)]
    assert batch.summary().attempts == 2


async def test_a_host_without_renewals_ends_its_attempts(
    autojump_clock: object,
) -> None:
    async with open_manager(adapters={"actor": Actor}) as manager:
        host = InProcessHost(manager)
        async with trio.open_nursery() as nursery:
            await nursery.start(host.serve)
            await host.renew(30)
            session = "ses_00000000000000000001"
            await host.submit(
                AttemptSpec(batch="b", job=job("a", Hang()), attempt=1, session_id=session)
            )
            ((_, ended),) = await host.follow(0)
            nursery.cancel_scope.cancel()
    assert ended.result.status is RunStatus.CANCELLED
    assert trio.current_time() == pytest.approx(30, abs=1)


async def test_a_batch_continues_after_its_process_was_suspended_for_long(
    real_clock: MockClock,
) -> None:
    async with open_manager(adapters={"actor": Actor}) as manager:
        jobs = [job("a", Wait(seconds=2 * LEASE), Say(text="done"))]
        async with run_batch(manager, jobs) as batch:
            await until(batch, {"thinking"})
            for _ in range(2):
                await wait_all_tasks_blocked()
                real_clock.jump(1.5 * LEASE)
            (result,) = [each async for each in batch]
    assert (result.status, result.text) == (RunStatus.COMPLETED, "done")
