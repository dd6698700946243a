"""Capabilities that a provider reports itself count for the active run and for later ones."""

from collections.abc import Mapping
from typing import ClassVar

import pytest
import trio
from msgspec import structs
from trio.testing import MockClock

from sessionmgr.adapter import CapabilityMissing, Options, RunContext
from sessionmgr.manager import NotPausable
from sessionmgr.model import (
    EMULATED,
    NATIVE,
    UNSUPPORTED,
    Capabilities,
    ErrorOccurred,
    FailureKind,
    RunStarted,
    RunStatus,
    Support,
)
from sessionmgr.testing.scripted_provider import (
    ALL_IT_DOES,
    CrashAdapter,
    Hang,
    ProviderLogEntry,
    Say,
    ScriptedProvider,
    Wait,
)
from tests.manager.harness import events, open_harness, run_scripted

LESS = {"images_in": UNSUPPORTED, "reasoning": EMULATED}


class Frank(ScriptedProvider):
    """A provider that reports its capabilities at the start of each run or later."""

    name: ClassVar[str] = "actor"
    capabilities: ClassVar[Capabilities] = structs.replace(ALL_IT_DOES, images_in=NATIVE)
    log: ClassVar[list[ProviderLogEntry]] = []
    says: ClassVar[Mapping[str, Support]] = LESS
    late: ClassVar[bool] = False

    async def run(self, run: RunContext) -> None:
        if self.late:
            await run.emit(RunStarted(provider_session_id="p"))
        run.narrow(self.says)
        await super().run(run)


class LateFrank(Frank):
    late: ClassVar[bool] = True


class MuteFrank(Frank):
    says: ClassVar[Mapping[str, Support]] = {"resume": UNSUPPORTED, "steer": UNSUPPORTED}

    async def append(self, run: RunContext, content: str, message_id: str) -> bool:
        raise AssertionError("it cannot be steered")


async def test_a_run_that_requires_what_is_missing_fails_with_that(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(actor=Frank) as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(Hang()), require=["images_in"])
        result = await run.result()
        assert result.status is RunStatus.FAILED
        assert result.failure is not None
        assert result.failure.kind is FailureKind.CAPABILITY_MISSING
        assert "images_in" in result.failure.message
        strict = await session.submit(run_scripted(Hang()), require_native=["streaming"])
        await trio.sleep(1)
        assert strict.status is RunStatus.RUNNING


async def test_what_a_run_prefers_is_degraded_in_its_record(autojump_clock: MockClock) -> None:
    async with open_harness(actor=Frank) as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(
            run_scripted(Say(text="x")), prefer=["images_in"], require=["reasoning"]
        )
        result = await run.result()
        assert result.status is RunStatus.COMPLETED
        assert result.negotiation is not None
        assert {each.name: each.support for each in result.negotiation.degraded} == LESS
        assert result.negotiation.granted == {"reasoning": EMULATED}
        [started] = [each for each in await events(run) if isinstance(each, RunStarted)]
        assert started.negotiation == result.negotiation


async def test_what_turns_out_after_the_start_is_a_warning(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(actor=LateFrank) as house:
        session = await house.manager.open_session("actor")
        prompt = run_scripted(Wait(seconds=1), Say(text="x"), starts=False)
        run = await session.submit(prompt, prefer=["images_in", "reasoning"])
        assert (await run.result()).status is RunStatus.COMPLETED
        told = [each for each in await events(run) if isinstance(each, ErrorOccurred)]
        assert [each.severity for each in told] == ["warning", "warning"]
        assert {each.failure.kind for each in told} == {FailureKind.CAPABILITY_MISSING}
        assert "images_in" in told[0].failure.message + told[1].failure.message
        assert "reasoning" in told[0].failure.message + told[1].failure.message
        plain = await session.submit(prompt)
        assert (await plain.result()).status is RunStatus.COMPLETED
        assert not any(isinstance(each, ErrorOccurred) for each in await events(plain))


async def test_later_negotiations_see_it(autojump_clock: MockClock) -> None:
    async with open_harness(actor=Frank) as house:
        manager = house.manager
        session = await manager.open_session("actor")
        before = await manager.negotiate("actor", require=["images_in"])
        assert (before.missing, manager.supports("actor", "images_in")) == ((), True)
        await (await session.submit(run_scripted(Say(text="x")))).result()
        after = await manager.negotiate("actor", require=["images_in"])
        assert (after.missing, manager.supports("actor", "images_in")) == (("images_in",), False)
        with pytest.raises(CapabilityMissing):
            await session.submit("look", images=("picture.png",))
        left_out = await session.submit("look", images=("picture.png",), prefer=["images_in"])
        result = await left_out.result()
        assert result.negotiation is not None
        assert result.negotiation.granted == {}


async def test_an_adapter_that_is_started_again_is_believed_again(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(actor=Frank) as house:
        session = await house.manager.open_session("actor")
        for _ in range(4):
            await (await session.submit(run_scripted(CrashAdapter(), Hang()))).result()
            await trio.sleep(0.1)
        assert house.manager.status().providers["actor"].state == "down"
        await trio.sleep(60)
        again = await session.submit("look", images=("picture.png",))
        result = await again.result()
        assert result.failure is not None
        assert result.failure.kind is FailureKind.CAPABILITY_MISSING


async def test_neither_a_message_nor_a_pause_asks_for_what_is_not_there(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(actor=MuteFrank) as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(Wait(seconds=5)))
        await trio.sleep(1)
        with pytest.raises(NotPausable, match="cannot resume"):
            await run.pause()
        follow_up = await run.append("more")
        assert follow_up.state == "queued"
        assert (await follow_up.run.result()).text == "more"


class Plainly(Options, frozen=True, kw_only=True):
    """Options that reduce the capabilities of a run."""

    plain: bool = False
    effort: str | None = None


class Modest(Frank):
    """A provider that can do less in a run with some options."""

    options: ClassVar[type[Options]] = Plainly
    says: ClassVar[Mapping[str, Support]] = {"reasoning": EMULATED}

    @classmethod
    def offers(cls, options: Options) -> Capabilities:
        assert isinstance(options, Plainly)
        plain = {"images_in": UNSUPPORTED, "effort": UNSUPPORTED}
        return cls.capabilities.narrowed(plain) if options.plain else cls.capabilities


async def test_a_run_has_what_there_is_for_its_options(autojump_clock: MockClock) -> None:
    async with open_harness(actor=Modest) as house:
        session = await house.manager.open_session("actor")
        with pytest.raises(CapabilityMissing, match="images_in"):
            await session.submit(
                run_scripted(Say(text="x")), options={"plain": True}, images=("a.png",)
            )
        run = await session.submit(
            run_scripted(Say(text="x")),
            options={"plain": True},
            prefer=["images_in", "effort", "reasoning"],
            effort="high",
        )
        result = await run.result()
        assert result.negotiation is not None
        degraded = {each.name: each.support for each in result.negotiation.degraded}
        # The reported capabilities apply in addition.
        assert degraded == {**LESS, "effort": UNSUPPORTED}
        whole = await session.submit(run_scripted(Say(text="x")), require=["images_in"])
        assert (await whole.result()).status is RunStatus.COMPLETED
        assert (await house.manager.negotiate("actor", require=["images_in"])).missing == ()
