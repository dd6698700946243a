"""A refused run is refused before anything starts, and leaves nothing behind."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
import trio
from trio.testing import MockClock

from sessionmgr.adapter import (
    Budget,
    CapabilityMissing,
    MappedMode,
    OptionInvalid,
    Options,
    PermissionMap,
    PermissionRefused,
    ProviderAdapter,
    ProviderUnknown,
    RunContext,
    StartRefused,
)
from sessionmgr.manager import DirectoryMissing, ManagerClosing, RunRequestUnsupported
from sessionmgr.model import (
    EMULATED,
    NATIVE,
    Capabilities,
    Fidelity,
    PermissionMode,
    RunStarted,
    RunStatus,
)
from sessionmgr.testing.scripted_provider import Hang, Say, ScriptedProvider, scripted
from tests.manager.harness import ManagerHarness, events, open_harness, run_scripted, stored


class OwnOptions(Options, frozen=True, kw_only=True):
    colour: str = "red"
    size: int = 1
    model: str | None = None


CHOOSY = scripted(
    "actor",
    capabilities=Capabilities(streaming=NATIVE, resume=EMULATED, model_choice=NATIVE),
    permissions=PermissionMap(
        {
            PermissionMode.DEFAULT: MappedMode("ask"),
            PermissionMode.PLAN: MappedMode("look", Fidelity.EMULATED),
            PermissionMode.FULL_AUTO: MappedMode("all", Fidelity.REFUSED),
        }
    ),
    options=OwnOptions,
)


async def nothing_is_stored(house: ManagerHarness) -> bool:
    return not (await house.store.sessions()).rows and not (await house.store.runs()).rows


@pytest.mark.parametrize(
    ("wishes", "refusal"),
    [
        ({"require": ["mcp"]}, CapabilityMissing),
        ({"require_native": ["resume"]}, CapabilityMissing),
        ({"require": ["no such thing"]}, CapabilityMissing),
        ({"permission_mode": "accept_edits"}, PermissionRefused),
        ({"permission_mode": "full_auto"}, PermissionRefused),
        ({"options": {"couler": "red"}}, OptionInvalid),
        ({"options": {"size": "large"}}, OptionInvalid),
        ({"options": Options()}, OptionInvalid),
        ({"system_prompt": "be good"}, CapabilityMissing),
        ({"images": ("a.png",)}, CapabilityMissing),
        ({"schema": {"type": "object"}}, CapabilityMissing),
        ({"max_turns": 2}, CapabilityMissing),
        ({"effort": "high"}, CapabilityMissing),
        ({"budget": Budget(usd=1)}, CapabilityMissing),  # its use could not be measured
        ({"budget": Budget(tokens=1000)}, CapabilityMissing),
        ({"tools_allowed": []}, RunRequestUnsupported),
        ({"tools_denied": ["Bash"]}, RunRequestUnsupported),
        ({"directories": ["/"]}, RunRequestUnsupported),
    ],
    ids=str,
)
async def test_what_a_provider_cannot_do_is_refused_and_nothing_is_stored(
    autojump_clock: MockClock, wishes: dict[str, Any], refusal: type[StartRefused]
) -> None:
    async with open_harness(actor=scripted_anew()) as house:
        session = await house.manager.open_session("actor")
        with pytest.raises(refusal):
            async with session.start("hello", **wishes):
                pytest.fail("it was started")
        with pytest.raises(refusal):
            await session.submit("hello", **wishes)
        assert await nothing_is_stored(house)
        assert house.actor.log == []
        assert not house.manager.tree().count("actor ")
        # the same session is still usable
        assert (await (await session.submit("hello")).result()).status is RunStatus.COMPLETED


def scripted_anew() -> type[ScriptedProvider]:
    return scripted(
        "actor",
        capabilities=CHOOSY.capabilities,
        permissions=CHOOSY.permissions,
        options=CHOOSY.options,
    )


async def test_an_unknown_provider_is_refused_with_the_nearest_known(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        with pytest.raises(ProviderUnknown, match="did you mean 'actor'"):
            await house.manager.open_session("acter")
        assert await nothing_is_stored(house)


async def test_a_misspelt_option_is_answered_with_the_nearest_known(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(actor=scripted_anew()) as house:
        session = await house.manager.open_session("actor")
        with pytest.raises(OptionInvalid, match=r"'couler'.*did you mean 'colour'"):
            await session.submit("hello", options={"couler": "red"})


async def test_a_refused_mode_says_which_modes_there_are(autojump_clock: MockClock) -> None:
    async with open_harness(actor=scripted_anew()) as house:
        session = await house.manager.open_session("actor", permission_mode="full_auto")
        with pytest.raises(PermissionRefused, match="it supports: default, plan") as refused:
            await session.submit("hello")
        assert refused.value.has == ("default", "plan")


async def test_a_session_in_a_directory_that_is_not_there_starts_nothing(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor", cwd=tmp_path / "gone")
        with pytest.raises(DirectoryMissing):
            await session.submit("hello")
        assert await nothing_is_stored(house)


async def test_a_manager_that_has_been_left_admits_nothing(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        run = await session.submit("hello")
        await run.result()
    with pytest.raises(ManagerClosing):
        await session.submit("too late")
    with pytest.raises(ManagerClosing):
        await run.append("too late")


async def test_what_was_granted_stands_in_the_result_and_in_the_first_event(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(actor=scripted_anew()) as house:
        session = await house.manager.open_session("actor", permission_mode="plan")
        run = await session.submit(
            "hello", require=["streaming"], prefer=["resume", "mcp"], model="big"
        )
        result = await run.result()
        assert result.negotiation is not None
        assert result.negotiation.granted == {
            "streaming": NATIVE,
            "resume": EMULATED,
            "model_choice": NATIVE,
        }
        assert [each.name for each in result.negotiation.degraded] == ["resume", "mcp"]
        assert result.negotiation.missing == ()
        assert result.permission is not None
        assert (result.permission.asked, result.permission.effective) == ("plan", "look")
        assert result.permission.fidelity is Fidelity.EMULATED
        [started] = [each for each in await events(run) if isinstance(each, RunStarted)]
        assert started.negotiation == result.negotiation
        assert started.permission == result.permission
        assert started.model == "big"
        assert await house.manager.result(run.id) == result


async def test_a_session_is_stored_with_its_first_run_and_not_before(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        await trio.sleep(100)
        assert await nothing_is_stored(house)
        run = await session.submit(run_scripted(Hang()))
        assert (await stored(house, session.id))[:2] == ["session_created", "message_sent"]
        run.cancel()


class CuriousAdapter(ProviderAdapter):
    name = "curious"
    capabilities = Capabilities(model_choice=NATIVE)
    options = OwnOptions
    seen: ClassVar[list[RunContext]] = []

    async def run(self, run: RunContext) -> None:
        self.seen.append(run)
        await run.finish()


async def test_a_run_has_its_options_model_and_metadata(autojump_clock: MockClock) -> None:
    CuriousAdapter.seen.clear()
    async with open_harness(others={"curious": CuriousAdapter}) as house:
        session = await house.manager.open_session("curious", model="small")
        first = await session.submit("a", options={"size": 3}, metadata={"ticket": 7})
        result = await first.result()
        second = await session.submit("b", options={"model": "theirs"}, model="ours")
        await second.result()
    assert result.metadata == {"ticket": 7}
    assert [run.options for run in CuriousAdapter.seen] == [
        OwnOptions(size=3, model="small"),
        OwnOptions(model="ours"),
    ]
    assert [run.model for run in CuriousAdapter.seen] == ["small", "ours"]


@pytest.mark.parametrize("how", ["open", "start"])
async def test_a_mode_that_does_not_exist_is_refused_with_those_that_do(
    autojump_clock: MockClock, how: str
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        wrong: Any = "yolo"
        ways: dict[str, Callable[[], Any]] = {
            "open": lambda: house.manager.open_session("actor", permission_mode=wrong),
            "start": lambda: session.submit("hello", permission_mode=wrong),
        }
        with pytest.raises(ValueError, match=r"'yolo'.*default, accept_edits, plan, full_auto"):
            await ways[how]()
        assert await nothing_is_stored(house)


async def test_negotiating_beforehand_tells_what_would_be_missing(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(actor=scripted_anew()) as house:
        asked = await house.manager.negotiate("actor", require=["mcp", "streaming"])
        assert asked.missing == ("mcp",)
        assert asked.granted == {"streaming": NATIVE}


async def test_a_run_gets_what_its_arguments_say(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        result = await house.result(Say(text="Hello, there", deltas=4))
        assert (result.status, result.text) == (RunStatus.COMPLETED, "Hello, there")


async def test_what_an_adapter_serves_reaches_its_run(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    heard: list[object] = []

    class Told(ProviderAdapter):
        name = "told"
        capabilities = Capabilities(effort=NATIVE)
        serves = frozenset({"tools_allowed", "tools_denied", "directories"})

        async def run(self, run: RunContext) -> None:
            heard.extend([run.effort, run.tools_allowed, run.tools_denied, run.directories])
            await run.finish()

    (tmp_path / "more").mkdir()
    async with open_harness(others={"told": Told}) as house:
        session = await house.manager.open_session("told", cwd=tmp_path)
        run = await session.submit(
            "go", effort="low", tools_allowed=["Read"], tools_denied=["Bash"], directories=["more"]
        )
        assert (await run.result()).status is RunStatus.COMPLETED
        assert heard == ["low", ("Read",), ("Bash",), (str(tmp_path / "more"),)]
        with pytest.raises(DirectoryMissing, match="gone"):
            await session.submit("go", directories=["gone"])
