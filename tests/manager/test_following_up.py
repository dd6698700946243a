"""A follow-up has the arguments of the followed run, and never wider permissions."""

from typing import ClassVar

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from sessionmgr.adapter import Budget, Options, RunContext
from sessionmgr.manager import Clocks, NotResumable
from sessionmgr.model import EMULATED, NATIVE, UNSUPPORTED, RunStarted, RunStatus
from sessionmgr.testing.scripted_provider import (
    ALL_IT_DOES,
    Fail,
    Hang,
    Say,
    ScriptedProvider,
    Tool,
    scripted,
)
from tests.manager.harness import ManagerHarness, open_harness, run_scripted


class SandboxOptions(Options, frozen=True, kw_only=True):
    network: bool = False
    rules: tuple[str, ...] = ()
    hook: object = None


class NarrowActor(scripted("actor")):  # type: ignore[misc]
    """A provider that accepts tools and options, and records them."""

    capabilities = replace(ALL_IT_DOES, effort=NATIVE, system_prompt=EMULATED)
    options = SandboxOptions
    serves = frozenset({"tools_allowed", "tools_denied", "directories"})
    specs: ClassVar[list[RunContext]] = []

    async def run(self, run: RunContext) -> None:
        self.specs.append(run)
        await super().run(run)


async def follow(house: ManagerHarness, run_id: str, **wishes: object) -> RunContext:
    run = await house.manager.submit_follow_up(run_id, run_scripted(Say(text="y")), **wishes)  # type: ignore[arg-type]
    assert (await run.result()).status is RunStatus.COMPLETED
    return NarrowActor.specs[-1]


async def test_a_follow_up_has_the_tools_options_and_limits_of_its_run(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(actor=NarrowActor) as house:
        session = await house.manager.open_session(
            "actor", permission_mode="plan", clocks=Clocks(idle=50)
        )
        run = await session.submit(
            run_scripted(Say(text="x")),
            tools_denied=["Bash"],
            tools_allowed=["Read", "Bash"],
            directories=["."],
            effort="low",
            system_prompt="be brief",
            options={"network": False, "rules": ["a"]},
            budget=Budget(usd=3),
            clocks=Clocks(deadline=60),
            env={"KEY": "value"},
        )
        first = await run.result()
        await session.close()
        before, after = NarrowActor.specs[-1], await follow(house, first.id)
        same = "tools_denied tools_allowed directories effort system_prompt options budget"
        for name in (*same.split(), "permission", "cwd", "model"):
            assert getattr(after, name) == getattr(before, name)
        assert after.provider_session_id == first.provider_session_id
        assert after.resumed_from == first.id
        (event,) = [
            each async for each in house.manager.events(first.id) if isinstance(each, RunStarted)
        ]
        assert isinstance(event.asked, dict)
        assert event.asked["variables"] == ["KEY"]
        assert event.asked["clocks"] == {"idle": 50, "deadline": 60}
        assert "value" not in str(event.asked)


async def test_what_a_caller_asks_for_comes_before_what_was_asked_for(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(actor=NarrowActor) as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(
            run_scripted(Say(text="x")), tools_denied=["Bash"], options={"rules": ["a"]}
        )
        first = await run.result()
        after = await follow(house, first.id, effort="high", options={"network": True})
        assert (after.effort, after.tools_denied) == ("high", ("Bash",))
        assert after.options == SandboxOptions(network=True, rules=("a",))


@pytest.mark.parametrize(
    ("steps", "status"),
    [
        ((Say(text="x"), Fail()), RunStatus.FAILED),
        ((Say(text="x"), Hang()), RunStatus.TIMED_OUT),
        ((Tool(name="Bash", takes=1000),), RunStatus.TIMED_OUT),
    ],
)
async def test_a_run_is_followed_up_however_it_ended(
    autojump_clock: MockClock, steps: tuple[Say, ...], status: RunStatus
) -> None:
    async with open_harness(actor=NarrowActor) as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(*steps), clocks=Clocks(deadline=10))
        assert (await run.result()).status is status
        again = await house.manager.submit_follow_up(run.id, "fix it")
        assert (await again.result()).text.endswith("fix it")


async def test_a_run_that_is_on_is_not_followed_up(autojump_clock: MockClock) -> None:
    async with open_harness(actor=NarrowActor) as house:
        run = await house.start(Say(text="x"), Hang())
        await trio.sleep(1)
        with pytest.raises(NotResumable, match="it is running: wait for its end"):
            await house.manager.submit_follow_up(run.id, "fix it")


async def test_options_that_cannot_be_stored_have_to_be_given_again(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(actor=NarrowActor) as house:
        session = await house.manager.open_session("actor")
        options = SandboxOptions(rules=("a",), hook=print)
        first = await (await session.submit(run_scripted(Say(text="x")), options=options)).result()
        assert first.status is RunStatus.COMPLETED
        with pytest.raises(NotResumable, match="its options hook cannot be stored"):
            await house.manager.submit_follow_up(first.id, "more")
        assert (await follow(house, first.id, options=options)).options == options


async def test_a_follow_up_may_be_followed_up(autojump_clock: MockClock) -> None:
    async with open_harness(actor=NarrowActor) as house:
        first = await house.result(Say(text="x"))
        second = await (await house.manager.submit_follow_up(first.id, "b")).result()
        third = await (await house.manager.submit_follow_up(second.id, "c")).result()
        assert third.resumed_from == second.id
        assert third.metadata == {"follow_up_of": second.id}


class ForgetfulProvider(ScriptedProvider):
    """A provider that resumes nothing."""

    name = "forgetful"
    capabilities = replace(ALL_IT_DOES, resume=UNSUPPORTED)


async def test_a_provider_that_cannot_resume_is_named(autojump_clock: MockClock) -> None:
    async with open_harness(others={"forgetful": ForgetfulProvider}) as house:
        session = await house.manager.open_session("forgetful")
        first = await (await session.submit("a")).result()
        with pytest.raises(NotResumable, match="forgetful cannot resume a session"):
            await house.manager.submit_follow_up(first.id, "b")
