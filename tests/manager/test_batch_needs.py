"""Methods that batches need: ids before a session exists, and its release after its last run."""

import gc

import pytest
import trio
import trio.testing

from sessionmgr import PermissionMode
from sessionmgr.adapter import PermissionMap, PermissionRefused
from sessionmgr.adapter.permission_map import MappedMode
from sessionmgr.manager import DirectoryMissing, RunRequest, SessionIsClosed
from sessionmgr.manager.run_state import RunState
from sessionmgr.model import IdKind, RunStatus
from sessionmgr.store import UnknownId
from sessionmgr.testing.scripted_provider import Hang, Say, scripted
from tests.manager.harness import open_harness, run_scripted


async def test_a_session_can_be_named_before_it_is_opened(autojump_clock: object) -> None:
    async with open_harness() as house:
        name = house.manager.new_id(IdKind.SESSION)
        session = await house.manager.open_session("actor", session_id=name)
        run = await session.submit(run_scripted(Say(text="hello")))
        assert (await run.result()).session_id == name


async def test_a_session_named_here_may_have_begun_elsewhere(autojump_clock: object) -> None:
    async with open_harness() as house:
        name = house.manager.new_id(IdKind.SESSION)
        async with open_harness(store=house.store) as other:
            session = await other.manager.open_session("actor", session_id=name)
            await (await session.submit(run_scripted(Say(text="hello")))).result()
            await session.close()
        session = await house.manager.session(name)
        with pytest.raises(SessionIsClosed):
            await session.submit(run_scripted(Say(text="more")))


async def test_a_closed_session_is_forgotten_at_once(autojump_clock: object) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        await (await session.submit(run_scripted(Say(text="hello")))).result()
        assert house.manager.status().sessions == 1
        before = trio.current_time()
        await session.close()
        await trio.testing.wait_all_tasks_blocked()
        assert (house.manager.status().sessions, trio.current_time()) == (0, before)


async def test_a_check_says_what_would_be_granted_and_starts_nothing(
    autojump_clock: object,
) -> None:
    async with open_harness() as house:
        wish = RunRequest(prompt="go", require=["steer"], permission_mode="plan")
        grant = house.manager.check("actor", wish)
        assert grant.permission.asked is PermissionMode.PLAN
        assert list(grant.negotiation.granted) == ["steer"]
        assert not house.actor.log


async def test_a_check_refuses_what_a_start_would_refuse(autojump_clock: object) -> None:
    only_default = PermissionMap({PermissionMode.DEFAULT: MappedMode("default")})
    async with open_harness(others={"shy": scripted("shy", permissions=only_default)}) as house:
        with pytest.raises(PermissionRefused):
            house.manager.check("shy", RunRequest(prompt="go", permission_mode="plan"))
        with pytest.raises(DirectoryMissing):
            house.manager.check("actor", RunRequest(prompt="go"), cwd="/no/such/place")


async def test_the_runs_of_a_session_are_returned_as_they_are(autojump_clock: object) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        first = await session.submit(run_scripted(Say(text="one")))
        await first.result()
        second = await session.submit(run_scripted(Hang()))
        await trio.sleep(1)
        runs = await house.manager.settled(session.id)
        assert [run.id for run in runs] == [second.id, first.id]
        assert runs[0].status is RunStatus.RUNNING
        second.cancel()


async def test_a_session_that_was_never_stored_has_no_runs(autojump_clock: object) -> None:
    async with open_harness() as house:
        with pytest.raises(UnknownId):
            await house.manager.settled("ses_none")


async def test_chance_is_a_number_between_nought_and_one(autojump_clock: object) -> None:
    async with open_harness() as house:
        assert 0 <= house.manager.chance() < 1
        assert house.manager.now() >= 1_800_000_000


async def test_of_runs_that_are_over_nothing_is_kept(autojump_clock: object) -> None:
    async with open_harness() as house:
        for _ in range(300):
            session = await house.manager.open_session("actor")
            run = await session.submit(run_scripted(Say(text="hello")))
            await run.result()
            await session.close()
        await trio.testing.wait_all_tasks_blocked()
        gc.collect()
        entries = [each for each in gc.get_objects() if isinstance(each, RunState)]
        assert len(entries) < 100
