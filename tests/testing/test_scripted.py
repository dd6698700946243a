"""A script is played exactly as it is written."""

import doctest

import msgspec
import pytest
import trio
from hypothesis import example, given, settings, strategies as st
from trio.testing import MockClock

import sessionmgr.testing.scripted_provider
from sessionmgr.adapter import Allow, ApprovalRequest, Decision
from sessionmgr.manager import open_manager
from sessionmgr.model import (
    NATIVE,
    AnyEvent,
    Capabilities,
    FailureKind,
    RunResult,
    RunStatus,
    TurnCompleted,
)
from sessionmgr.testing.scripted_provider import (
    Alive,
    Ask,
    Crash,
    CrashAdapter,
    Deaf,
    Emit,
    Error,
    Fail,
    Finish,
    Flood,
    Hang,
    Hear,
    Leave,
    RateLimited,
    Repeat,
    Say,
    Script,
    ScriptedProvider,
    Step,
    Think,
    Together,
    Tool,
    TurnEnd,
    Use,
    Wait,
    parse_script,
    scripted,
    write_script,
)

EVERY_STEP: tuple[Step, ...] = (
    Say(text="hi", deltas=2, pause=0.5),
    Think(text="hm", deltas=3),
    Tool(name="ls", input={"path": "."}, output=["a"], prints=("a", "b"), takes=1.0),
    Ask(tool="rm", input={"path": "a"}, effect="edit", paths=("/a",), withdraw_after=3.0),
    Wait(seconds=1),
    Alive(every=1, times=2),
    Use(input=1, output=2, usd=0.5),
    Flood(events=10, size=3),
    Error(message="oh"),
    Emit(event=TurnCompleted(open_tasks=1)),
    TurnEnd(),
    Repeat(times=2, steps=(Say(text="again"),)),
    Together(parts=((Wait(seconds=1), Say(text="a")), (Say(text="b"),))),
    Deaf(seconds=1),
    Leave(),
    Fail(kind=FailureKind.OVERLOADED),
    RateLimited(),
    Finish(),
    Hear(),
    CrashAdapter(),
    Crash(depth=2),
    Hang(),
)


async def played(
    script: str, actor: type[ScriptedProvider] | None = None
) -> tuple[RunResult, list[AnyEvent]]:
    async def approve(request: ApprovalRequest) -> Decision:
        await trio.lowlevel.checkpoint()
        return Allow()

    async with open_manager(adapters={"actor": actor or scripted("actor")}) as manager:
        session = await manager.open_session("actor", approve=approve)
        run = await session.submit(script)
        events = [event async for event in run]
        return await run.result(), events


def test_the_example_works() -> None:
    examples = doctest.testmod(
        sessionmgr.testing.scripted_provider,
        extraglobs={"open_manager": open_manager, "trio": trio},
        raise_on_error=True,
    )
    assert examples.attempted >= 3


def test_a_script_is_the_same_after_it_was_json() -> None:
    script = Script(steps=EVERY_STEP, interrupt="ignore", append="refuse", unwinds=2.0)
    assert parse_script(write_script(script)) == script


def test_a_list_of_steps_is_a_script() -> None:
    assert parse_script(' [{"do": "wait", "seconds": 2}]') == Script(steps=(Wait(seconds=2),))


@pytest.mark.parametrize(
    "text", ['[{"do": "dance"}]', '[{"do": "wait"}]', '[{"do": "wait", "seconds": 1, "hours": 1}]']
)
def test_what_is_no_script_is_refused(text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        parse_script(text)


async def test_every_step_that_can_be_followed_is_played(autojump_clock: MockClock) -> None:
    steps = EVERY_STEP[: EVERY_STEP.index(Leave())]
    result, events = await played(write_script(Script(steps=steps)))
    assert result.status is RunStatus.COMPLETED
    names = {event.type for event in events}
    assert names >= {
        "message_streamed",
        "message_received",
        "reasoning_streamed",
        "reasoning_received",
        "tool_call_started",
        "tool_call_updated",
        "tool_call_completed",
        "tool_approval_requested",
        "tool_approval_granted",
        "token_usage_updated",
        "error_occurred",
        "turn_completed",
    }
    assert result.tool_calls.count == {"ls": 1, "rm": 1}
    assert (result.usage.input, result.usage.output, result.cost.usd) == (1, 2, 0.5)
    # pauses, tool, wait, signs of life, together, ignored cancel
    assert trio.current_time() == pytest.approx(2 * 0.5 + 1 + 1 + 2 + 1 + 1)


async def test_a_crash_of_the_adapter_is_not_a_crash_of_the_run_alone(
    autojump_clock: MockClock,
) -> None:
    async with open_manager(adapters={"actor": scripted("actor")}) as manager:
        session, other = [await manager.open_session("actor") for _ in range(2)]
        neighbour = await other.submit(write_script(Script(steps=(Hang(),))))
        await trio.sleep(1)
        run = await session.submit(write_script(Script(steps=(CrashAdapter(), Hang()))))
        for each in (run, neighbour):
            result = await each.result()
            assert result.failure is not None
            assert result.failure.kind is FailureKind.ADAPTER_CRASHED


async def test_a_script_is_chosen_by_its_name_or_by_a_function(autojump_clock: MockClock) -> None:
    table = scripted("actor", scripts={"greet": (Say(text="Good day"),)})
    assert (await played("greet", table))[0].text == "Good day"
    assert (await played("something else", table))[0].text == "something else"

    def second_time_lucky(prompt: str, attempt: int) -> tuple[Step, ...]:
        return (Say(text=f"{prompt}: done"),) if attempt else (Fail(),)

    function = scripted("actor", scripts=second_time_lucky)
    assert (await played("do", function))[0].status is RunStatus.FAILED
    assert (await played("do", function))[0].text == "do: done"


async def test_what_the_provider_saw_stands_in_its_diary(autojump_clock: MockClock) -> None:
    actor = scripted("actor")
    async with open_manager(adapters={"actor": actor}) as manager:
        session = await manager.open_session("actor", permission_mode="plan")
        run = await session.submit(write_script(Script(steps=(Hear(), Hang()))))
        await trio.sleep(1)
        assert (await run.append("and this")).accepted
        await trio.sleep(1)
        run.cancel()
        assert (await run.result()).text == "and this"
    assert [entry.what for entry in actor.log] == ["prompt", "append", "interrupt", "over"]
    assert {entry.mode for entry in actor.log} == {"plan"}
    assert scripted("actor").log == []


def test_only_what_is_said_to_be_there_is_there() -> None:
    plain = scripted(capabilities=Capabilities(streaming=NATIVE))
    assert not plain.can_interrupt()
    assert not plain.can_append()
    assert scripted().can_interrupt()
    assert scripted().can_append()


@given(text=st.text(), deltas=st.integers(1, 9))
@settings(max_examples=25)
@example(text="what ends so is held back for a moment: sk", deltas=2)
def test_what_is_streamed_adds_up_to_what_is_said(text: str, deltas: int) -> None:
    async def main() -> None:
        _, events = await played(write_script(Script(steps=(Say(text=text, deltas=deltas),))))
        streamed = [getattr(e, "delta", "") for e in events if e.type == "message_streamed"]
        assert len(streamed) <= deltas + 1  # the start of a key is sent with the text after it
        assert "".join(streamed) == text

    trio.run(main, clock=MockClock(autojump_threshold=0))
