"""The conformance of the adapters in this repository."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from sessionmgr.testing.adapter_conformance import AdapterCase, AdapterConformance, Play
from sessionmgr.testing.mock_sdk import MockSdk, with_sdk
from sessionmgr.testing.script import (
    Ask,
    Fail,
    Finish,
    Hang,
    Say,
    Script,
    Step,
    Tool,
    write_script,
)
from sessionmgr.testing.scripted_provider import scripted
from sessionmgr.testing.toy import ToyAdapter
from sessionmgr_adapters.shell import ShellAdapter
from tests.testing.conformance.echo import Echo
from tests.testing.toy.mock_agent import agent_of_frames
from tests.testing.toy.toy_dialect import TOY


class TestEcho(AdapterConformance):
    case = AdapterCase(adapter=Echo, answers=Play(prompt="hi", text="hi"), virtual=True)


def steps(*given: Step) -> str:
    return write_script(Script(steps=given))


class TestScripted(AdapterConformance):
    case = AdapterCase(
        adapter=scripted("actor"),
        answers=Play(
            prompt=steps(Say(text="hello", deltas=3), Tool(name="look"), Say(text="bye")),
            text="bye",
        ),
        fails=Play(prompt=steps(Say(text="half"), Fail(message="no")), text="half"),
        hangs=Play(prompt=steps(Say(text="half", deltas=2), Hang()), text="half"),
        deaf=Play(
            prompt=write_script(
                Script(steps=(Say(text="half", deltas=2), Hang()), interrupt="ignore")
            ),
            text="half",
        ),
        asks=Play(prompt=steps(Ask(tool="saw"), Say(text="done"), Finish()), text="done"),
        virtual=True,
    )


class TestShell(AdapterConformance):
    case = AdapterCase(
        adapter=ShellAdapter,
        answers=Play(prompt="sh -c 'echo one; echo two'", text="one\ntwo\n"),
        fails=Play(prompt="sh -c 'echo half; exit 3'", text="half\n"),
        hangs=Play(prompt="sh -c 'echo half; sleep 1000; echo rest'", text="half\n"),
        deaf=Play(
            prompt="trap '' TERM INT HUP; echo half; while :; do sleep 0.05; done",
            text="half\n",
            options={"shell": True, "timeout": None},
        ),
        grace=1.0,
    )


TOYS = AdapterCase(
    adapter=ToyAdapter,
    answers=Play(prompt="say one two; use hammer; three", text="three"),
    fails=Play(prompt="half; fail at last", text="half"),
    hangs=Play(prompt="half; wait 1000", text="half"),
    asks=Play(prompt="ask saw; done", text="done"),
    grace=1.0,
)


class TestToy(AdapterConformance):
    """On real children, of the agent and of a player."""

    case = replace(TOYS, deaf=Play(prompt="half; deaf 1000", text="half"), dialect=TOY)


class TestToyMocked(AdapterConformance):
    """In virtual time, with a mock `sdk`."""

    case = replace(TOYS, deaf=Play(prompt="half; deaf 1000", text="half"), virtual=True)

    @asynccontextmanager
    async def open_case(self, place: Path) -> AsyncGenerator[AdapterCase, None]:
        async with MockSdk(agent_of_frames) as sdk:
            yield replace(self.case, adapter=with_sdk(ToyAdapter, sdk))


def test_what_is_left_out_is_said() -> None:
    assert "the case has no prompt 'hangs'" in TestEcho.left_out.values()
    assert "echo does not have the capability 'resume'" in TestEcho.left_out.values()
    assert not any("hangs" in name for name in vars(TestEcho))
    assert TestToy.left_out == {}
