"""Each clock acts in its own state: it warns at half, and ends the run at its limit."""

from typing import Any, ClassVar, cast

import pytest
import trio
from trio.testing import MockClock

from sessionmgr.adapter import (
    NATIVE,
    Allow,
    ApprovalRequest,
    Budget,
    Capabilities,
    Decision,
    ProviderAdapter,
    RunContext,
)
from sessionmgr.manager import Clocks, RunHandle
from sessionmgr.model import (
    EndReason,
    FailureKind,
    Json,
    RunStarted,
    RunStatus,
    StallSuspected,
)
from sessionmgr.testing.scripted_provider import (
    Alive,
    Ask,
    Deaf,
    Finish,
    Hang,
    Repeat,
    Say,
    Step,
    Tool,
    TurnEnd,
    Wait,
)
from tests.manager.harness import events, open_harness, run_scripted

OFF = Clocks(start=0, model=0, tool=0, tool_warning=0, idle=0, drain=0, deadline=0)


async def stalls(run: RunHandle) -> list[StallSuspected]:
    return [event for event in await events(run) if isinstance(event, StallSuspected)]


def said(stall: StallSuspected, name: str) -> Json:
    return cast("dict[str, Json]", stall.evidence)[name]


SILENCES: dict[str, tuple[Clocks, tuple[Step, ...]]] = {
    "start": (Clocks(start=40), (Hang(),)),
    "model": (Clocks(model=40), (Say(text="hm"), Hang())),
    "idle": (Clocks(idle=40), (Say(text="hm"), TurnEnd(), Hang())),
    "drain": (Clocks(drain=40), (Say(text="hm"), TurnEnd(open_tasks=2), Hang())),
    "tool": (Clocks(tool=40, tool_warning=600), (Tool(name="make", takes=10_000),)),
}


@pytest.mark.parametrize("name", SILENCES)
async def test_a_clock_warns_at_half_and_then_acts_with_its_evidence(
    autojump_clock: MockClock, name: str
) -> None:
    clocks, steps = SILENCES[name]
    async with open_harness(clocks=clocks.over(OFF)) as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(*steps, starts=name != "start"))
        result = await run.result()
        assert trio.current_time() == pytest.approx(40, abs=0.2)
        assert (result.status, result.reason) == (RunStatus.TIMED_OUT, EndReason.IDLE)
        assert result.failure is not None
        assert result.failure.kind is FailureKind.STALLED
        assert name in result.failure.message
        warning, act = await stalls(run)
        assert warning.silent_for == pytest.approx(20, abs=0.2)
        assert act.silent_for == pytest.approx(40, abs=0.2)
        for stall in (warning, act):
            assert stall.state == name
            assert stall.synthetic is True
            assert (said(stall, "clock"), said(stall, "limit")) == (name, 40)
        assert said(act, "open_tools") == (["make"] if name == "tool" else [])
        assert said(act, "open_tasks") == (2 if name == "drain" else 0)


@pytest.mark.parametrize("name", SILENCES)
async def test_a_session_that_was_silent_can_be_resumed_if_it_is_known_also_within_a_tool(
    autojump_clock: MockClock, name: str
) -> None:
    clocks, steps = SILENCES[name]
    async with open_harness(clocks=clocks.over(OFF)) as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(*steps, starts=name != "start"))
        result = await run.result()
        assert result.failure is not None
        assert (result.provider_session_id is not None) == (name != "start")
        assert result.failure.resumable == (name != "start")


@pytest.mark.parametrize("name", SILENCES)
async def test_nought_switches_a_clock_off(autojump_clock: MockClock, name: str) -> None:
    _, steps = SILENCES[name]
    async with open_harness(clocks=OFF) as house:
        session = await house.manager.open_session("actor")
        steps = tuple(Wait(seconds=5000) if isinstance(each, Hang) else each for each in steps)
        run = await session.submit(run_scripted(*steps, starts=name != "start"))
        assert (await run.result()).status is RunStatus.COMPLETED
        assert await stalls(run) == []


async def test_a_tools_silence_is_its_own_business_and_warned_about_at_ten_minutes(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        run = await house.start(Tool(name="make", takes=7200))
        assert (await run.result()).status is RunStatus.COMPLETED
        [warning] = await stalls(run)
        assert warning.silent_for == pytest.approx(600, abs=2)
        assert said(warning, "open_tools") == ["make"]


async def test_a_tool_clock_acts_in_time_even_before_its_warning(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(clocks=Clocks(tool=60)) as house:
        run = await house.start(Tool(name="make", takes=7200))
        assert (await run.result()).status is RunStatus.TIMED_OUT
        assert trio.current_time() == pytest.approx(60, abs=0.2)


@pytest.mark.parametrize(
    "step",
    [
        Repeat(times=20, steps=(Wait(seconds=9), Say(text="x"))),
        Alive(every=9, times=20),
    ],
    ids=["speaks", "is alive"],
)
async def test_a_sign_of_life_sets_a_clock_back(autojump_clock: MockClock, step: Step) -> None:
    async with open_harness(clocks=Clocks(start=10, model=10, idle=10)) as house:
        result = await house.result(step)
        assert result.status is RunStatus.COMPLETED
        assert trio.current_time() == pytest.approx(180, abs=0.1)


async def test_a_warning_comes_once_in_each_silence(autojump_clock: MockClock) -> None:
    async with open_harness(clocks=Clocks(start=10, model=10)) as house:
        run = await house.start(Repeat(times=3, steps=(Say(text="x"), Wait(seconds=8))))
        await run.result()
        assert [round(each.silent_for) for each in await stalls(run)] == [5, 5, 5]


async def test_who_speaks_at_once_has_started(autojump_clock: MockClock) -> None:
    async with open_harness(clocks=Clocks(start=10)) as house:
        result = await house.result(Say(text="x"), Wait(seconds=100))
        assert result.status is RunStatus.COMPLETED


async def test_the_deadline_counts_from_the_turn_and_nothing_sets_it_back(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(clocks=Clocks(deadline=30)) as house:
        session = await house.manager.open_session("actor")
        await session.submit(run_scripted(Wait(seconds=20)))
        chatty = Repeat(times=1000, steps=(Wait(seconds=1), Say(text="x")))
        run = await session.submit(run_scripted(chatty))
        result = await run.result()
        assert trio.current_time() == pytest.approx(50, abs=0.2)
        assert (result.status, result.reason) == (RunStatus.TIMED_OUT, EndReason.DEADLINE)
        assert result.failure is not None
        assert result.failure.kind is FailureKind.TIMED_OUT


async def test_the_deadline_strikes_in_a_question_and_in_a_tool_too(
    autojump_clock: MockClock,
) -> None:
    async def approve(_: ApprovalRequest) -> Decision:
        await trio.sleep(100)
        return Allow()

    async with open_harness(clocks=Clocks(deadline=30)) as house:
        session = await house.manager.open_session("actor", approve=approve)
        asking = await session.submit(run_scripted(Ask(tool="rm")))
        assert (await asking.result()).reason is EndReason.DEADLINE
        working = await session.submit(run_scripted(Tool(name="make", takes=100)))
        assert (await working.result()).reason is EndReason.DEADLINE
        assert trio.current_time() == pytest.approx(60, abs=0.3)


async def test_a_question_explains_a_silence(autojump_clock: MockClock) -> None:
    async def approve(_: ApprovalRequest) -> Decision:
        await trio.sleep(100)
        return Allow()

    clocks = Clocks(start=10, model=10, tool=10, idle=10, approval=0)
    async with open_harness(clocks=clocks) as house:
        session = await house.manager.open_session("actor", approve=approve)
        run = await session.submit(run_scripted(Ask(tool="rm"), Finish()))
        assert (await run.result()).status is RunStatus.COMPLETED
        assert await stalls(run) == []


class AskingAdapter(ProviderAdapter):
    """An adapter that asks, and waits after the answer."""

    name = "asking"
    capabilities: ClassVar[Capabilities] = Capabilities(streaming=NATIVE, tool_approval=NATIVE)

    async def run(self, run: RunContext) -> None:
        await run.emit(RunStarted(provider_session_id=run.session_id))
        await run.ask(ApprovalRequest(tool_name="rm"))
        await trio.sleep(9)
        await run.finish(stop_reason="end_turn")


async def test_the_silence_after_an_answer_counts_from_the_answer(
    autojump_clock: MockClock,
) -> None:
    async def approve(_: ApprovalRequest) -> Decision:
        await trio.sleep(100)
        return Allow()

    async with open_harness(clocks=Clocks(model=10), others={"asking": AskingAdapter}) as house:
        session = await house.manager.open_session("asking", approve=approve)
        run = await session.submit("hello")
        assert (await run.result()).status is RunStatus.COMPLETED
        *_, stalled = await stalls(run)
        assert (stalled.state, stalled.silent_for) == ("model", 5)


async def test_the_nearer_clock_wins(autojump_clock: MockClock) -> None:
    async with open_harness(clocks=Clocks(model=90)) as house:
        far = await house.manager.open_session("actor")
        near = await house.manager.open_session("actor", clocks=Clocks(model=60))
        prompt = run_scripted(Say(text="x"), Hang())
        runs = [
            (90, await far.submit(prompt)),
            (60, await near.submit(prompt)),
        ]
        for seconds, run in runs:
            result = await run.result()
            assert result.failure is not None
            assert f"{seconds}" in result.failure.message


async def test_a_runs_own_clocks_come_before_its_sessions(autojump_clock: MockClock) -> None:
    async with open_harness(clocks=Clocks(model=90, idle=7)) as house:
        session = await house.manager.open_session("actor", clocks=Clocks(model=60))
        run = await session.submit(run_scripted(Say(text="x"), Hang()), clocks=Clocks(model=30))
        await run.result()
        assert trio.current_time() == pytest.approx(30, abs=0.2)
        off = await session.submit(
            run_scripted(Say(text="x"), Wait(seconds=500)), clocks=Clocks(model=0)
        )
        assert (await off.result()).status is RunStatus.COMPLETED
        inherits = await session.submit(run_scripted(TurnEnd(), Hang()), clocks=Clocks(model=1))
        before = trio.current_time()
        await inherits.result()
        assert trio.current_time() - before == pytest.approx(7, abs=0.2)


async def test_the_close_clock_bounds_the_end(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor", clocks=Clocks(close=2))
        run = await session.submit(run_scripted(Deaf(seconds=100)))
        await trio.sleep(1)
        run.cancel()
        await run.result()
        assert trio.current_time() <= 1 + 3 * 2 + 0.1


async def test_a_clock_that_strikes_a_deaf_run_ends_it_all_the_same(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(clocks=Clocks(model=10)) as house:
        run = await house.start(Say(text="x"), Deaf(seconds=1000))
        result = await run.result()
        assert (result.status, result.reason) == (RunStatus.TIMED_OUT, EndReason.IDLE)
        assert trio.current_time() <= 10 + 3 * 5 + 0.1


async def test_many_runs_have_their_clocks_each(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        runs: list[RunHandle] = []
        for number in range(200):
            session = await house.manager.open_session(
                "actor", clocks=Clocks(model=10 + number % 10)
            )
            runs.append(await session.submit(run_scripted(Say(text="x"), Hang())))
        start = trio.current_time()
        for number, run in enumerate(runs):
            await run.result()
            assert run.status is RunStatus.TIMED_OUT
            assert len(await stalls(run)) == 2, number
        assert trio.current_time() - start <= 21


async def test_the_deadline_warns_at_half_and_then_acts_with_its_evidence(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(clocks=Clocks(deadline=30)) as house:
        run = await house.start(Wait(seconds=10), Tool(name="make", takes=100))
        assert (await run.result()).reason is EndReason.DEADLINE
        warning, act = await stalls(run)
        for stall, at in ((warning, 15), (act, 30)):
            assert stall.state == "deadline"
            assert (said(stall, "clock"), said(stall, "limit")) == ("deadline", 30)
            assert said(stall, "running_for") == pytest.approx(at, abs=0.1)
            assert stall.silent_for == pytest.approx(at - 10, abs=0.1)
            assert said(stall, "open_tools") == ["make"]


async def test_the_approval_clock_warns_at_half_and_then_acts_with_its_evidence(
    autojump_clock: MockClock,
) -> None:
    at: list[float] = []

    async def approve(request: ApprovalRequest) -> Decision:
        at.append(trio.current_time())
        await trio.sleep(25 if request.tool_name == "slow" else 100)
        return Allow()

    async with open_harness(clocks=Clocks(approval=40)) as house:
        session = await house.manager.open_session("actor", approve=approve)
        run = await session.submit(run_scripted(Ask(tool="slow"), Ask(tool="rm"), Finish()))
        assert (await run.result()).status is RunStatus.COMPLETED
        slow, warning, act = await stalls(run)
        assert (said(slow, "tool_name"), slow.silent_for) == ("slow", 20)
        assert (said(warning, "tool_name"), warning.silent_for) == ("rm", 20)
        assert (said(act, "tool_name"), act.silent_for) == ("rm", 40)
        assert {each.state for each in (slow, warning, act)} == {"approval"}
        assert said(act, "limit") == 40
        names = [event.type for event in await events(run)]
        assert names.index("tool_approval_denied") > names.index("stall_suspected")


@pytest.mark.parametrize(
    ("clocks", "steps"),
    [
        (Clocks(start=1000, model=10), (Wait(seconds=1), Say(text="x"), Hang())),
        (
            Clocks(model=10, idle=1000),
            (Say(text="x"), TurnEnd(), Wait(seconds=1), Say(text="y"), Hang()),
        ),
        (Clocks(model=1000, idle=10), (Say(text="x"), Wait(seconds=1), TurnEnd(), Hang())),
        (Clocks(model=1000, drain=10), (Wait(seconds=1), TurnEnd(open_tasks=1), Hang())),
        (Clocks(model=1000, tool=10), (Wait(seconds=1), Tool(name="make", takes=900))),
    ],
    ids=["started", "at work again", "idle", "draining", "in a tool"],
)
async def test_a_clock_that_is_nearer_than_the_one_before_strikes_in_time(
    autojump_clock: MockClock, clocks: Clocks, steps: tuple[Step, ...]
) -> None:
    async with open_harness(clocks=clocks) as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(*steps, starts=clocks.start is None))
        assert (await run.result()).status is RunStatus.TIMED_OUT
        assert trio.current_time() == pytest.approx(11, abs=0.2)


@pytest.mark.parametrize("clock", Clocks.__struct_fields__)
@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "600", True], ids=repr)
def test_a_clock_that_shows_no_time_is_refused_by_its_name(clock: str, seconds: Any) -> None:
    with pytest.raises(ValueError, match=f"clock {clock}: expected a number"):
        Clocks(**{clock: seconds})


@pytest.mark.parametrize(
    "limits",
    [{"usd": -1}, {"usd": float("nan")}, {"usd": "1"}, {"tokens": -5}, {"tokens": 1.5}],
    ids=repr,
)
def test_a_budget_that_cannot_be_used_up_is_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"budget: {next(iter(limits))} must be"):
        Budget(**limits)
