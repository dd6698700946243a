"""Attempt numbers are fencing tokens: of one job, only the newest attempt continues."""

import trio
from trio.testing import MockClock

from sessionmgr.batch import AttemptSpec, InProcessHost
from sessionmgr.model import EndReason, IdKind, RunResult, RunStatus
from sessionmgr.testing.scripted_provider import Hang, Say
from tests.batch.open_batch import BatchSetup, job, open_batch_setup


def attempt(setup: BatchSetup, number: int, *steps: Say | Hang) -> AttemptSpec:
    return AttemptSpec(
        batch="bat_1",
        job=job("a", *steps),
        attempt=number,
        session_id=setup.manager.new_id(IdKind.SESSION),
    )


async def test_a_newer_attempt_takes_over(autojump_clock: MockClock) -> None:
    async with open_batch_setup() as setup, trio.open_nursery() as nursery:
        host = InProcessHost(setup.manager)
        await nursery.start(host.serve)
        await host.submit(attempt(setup, 1, Say(text="old"), Hang()))
        await trio.sleep(1)
        await host.submit(attempt(setup, 2, Say(text="new")))
        ended: dict[int, RunResult] = {}
        while len(ended) < 2:
            for _, report in await host.follow(0):
                ended[report.attempt] = report.result
            await trio.sleep(0.1)
        nursery.cancel_scope.cancel()
    assert (ended[1].status, ended[1].reason) == (RunStatus.CANCELLED, EndReason.SUPERSEDED)
    assert (ended[1].text, ended[1].detail) == ("old", "superseded by attempt 2")
    assert (ended[2].status, ended[2].text) == (RunStatus.COMPLETED, "new")
