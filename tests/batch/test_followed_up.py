"""Jobs with manual follow-ups made while their batch was not running."""

from pathlib import Path

import trio
from trio.testing import MockClock

from sessionmgr import Manager, open_manager, run_batch
from sessionmgr.batch.recovery import recover_attempt
from sessionmgr.manager import RunHandle, SessionBusy
from sessionmgr.model import IdKind, RunStatus
from sessionmgr.testing.scripted_provider import Fail, Hang, Say, scripted
from tests.batch.open_batch import job, open_batch_setup
from tests.manager.harness import run_scripted

PATIENCE = 120


async def test_a_follow_up_is_not_taken_for_the_attempt_that_it_follows(
    autojump_clock: MockClock,
) -> None:
    async with open_batch_setup() as setup:
        session_id = setup.manager.new_id(IdKind.SESSION)
        session = await setup.manager.open_session("actor", session_id=session_id)
        attempt = await (await session.submit(run_scripted(Say(text="x"), Fail()))).result()
        follow_up = await setup.manager.submit_follow_up(attempt.id, "fix it")
        assert (await follow_up.result()).status is RunStatus.COMPLETED
        ended = await recover_attempt(setup.manager, "a", 1, session=session_id, others=())
        assert ended is not None
        assert ended.result.id == attempt.id


async def test_an_ended_job_is_followed_up_while_its_batch_continues(
    tmp_path: Path,
) -> None:
    store, adapters = tmp_path / "runs.db", {"actor": scripted("actor")}
    jobs = [job("failed", Say(text="x"), Fail()), job("done", Say(text="x")), job("on", Hang())]
    with trio.fail_after(PATIENCE):
        async with (
            open_manager(store=store, adapters=adapters) as ours,
            run_batch(ours, jobs, retries=0) as batch,
            open_manager(store=store, adapters=adapters) as theirs,
        ):
            results = aiter(batch)
            for _ in range(2):
                result = await anext(results)
                follow_up = await let_in(theirs, result.id)
                assert (await follow_up.result()).text == "fix it"
            batch.stop("that was all")
            assert (await anext(results)).job == "on"


async def let_in(manager: Manager, run_id: str) -> RunHandle:
    """Start a follow-up as soon as the batch's manager has released the session."""
    while True:
        try:
            return await manager.submit_follow_up(run_id, "fix it")
        except SessionBusy:
            await trio.sleep(0.01)
