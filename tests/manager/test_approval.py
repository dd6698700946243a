"""Approvals: who decides, by when, and what is stored before anything happens."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from sessionmgr.adapter import (
    Allow,
    ApprovalRequest,
    Approve,
    Decision,
    Deny,
    ProviderAdapter,
    RunContext,
)
from sessionmgr.manager import Clocks, RunHandle
from sessionmgr.manager.inbox import MOST_QUESTIONS
from sessionmgr.model import (
    AnyEvent,
    EndReason,
    FailureKind,
    Json,
    PermissionMode,
    RunStatus,
    ToolApproval,
    ToolApprovalDenied,
    ToolApprovalGranted,
    ToolApprovalRequested,
    ToolCallCompleted,
    ToolCallFailed,
)
from sessionmgr.testing.scripted_provider import (
    Ask,
    Flood,
    Hang,
    Repeat,
    Say,
    Step,
    Together,
    Wait,
)
from tests.manager.harness import ManagerHarness, events, open_harness, run_scripted, stored

RM = Ask(tool="rm", input={"path": "a"}, reason="it is in the way", output="gone")


def answer(decision: Decision, after: float = 0.0) -> Approve:
    async def approve(_: ApprovalRequest) -> Decision:
        await trio.sleep(after)
        return decision

    return approve


async def asked(
    house: ManagerHarness,
    approve: Approve | None,
    *steps: Step,
    mode: str = "default",
    clocks: Clocks | None = None,
) -> RunHandle:
    session = await house.manager.open_session(
        "actor", approve=approve, permission_mode=PermissionMode(mode)
    )
    return await session.submit(run_scripted(*steps), clocks=clocks or Clocks())


def questions(found: list[AnyEvent]) -> list[ToolApproval]:
    return [event for event in found if isinstance(event, ToolApproval)]


async def test_what_is_allowed_is_done(autojump_clock: MockClock) -> None:
    seen: list[ApprovalRequest] = []

    async def approve(request: ApprovalRequest) -> Decision:
        await trio.sleep(1)
        seen.append(request)
        return Allow(reason="fine")

    async with open_harness() as house:
        run = await asked(house, approve, RM)
        result = await run.result()
        found = await events(run)
        [request, granted] = questions(found)
        assert isinstance(granted, ToolApprovalGranted)
        assert (granted.by, granted.reason, granted.tool_input) == ("caller", "fine", {"path": "a"})
        assert request.approval_id == granted.approval_id
        [done] = [event for event in found if isinstance(event, ToolCallCompleted)]
        assert (done.tool_input, done.tool_output) == ({"path": "a"}, "gone")
        assert result.tool_calls.denied == 0
        [question] = seen
        assert question.run_id == run.id
        assert question.session_id == run.session_id
        assert question.provider == "actor"
        assert (question.tool_name, question.reason) == ("rm", "it is in the way")


@pytest.mark.parametrize(
    ("mode", "approval", "told"),
    [("default", 30.0, 30.0), ("default", 0.0, None), ("full_auto", 30.0, None)],
)
async def test_a_request_says_how_long_its_answer_is_awaited(
    autojump_clock: MockClock, mode: str, approval: float, told: float | None
) -> None:
    async with open_harness() as house:
        clocks = Clocks(approval=approval)
        run = await asked(house, answer(Allow()), RM, mode=mode, clocks=clocks)
        await run.result()
        request = questions(await events(run))[0]
        assert isinstance(request, ToolApprovalRequested)
        assert request.timeout == told


async def test_what_is_allowed_with_another_input_is_done_with_that(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        run = await asked(house, answer(Allow(tool_input={"path": "b"})), RM)
        await run.result()
        found = await events(run)
        assert questions(found)[1].tool_input == {"path": "b"}
        [done] = [event for event in found if isinstance(event, ToolCallCompleted)]
        assert done.tool_input == {"path": "b"}


@pytest.mark.parametrize("changed", [None, False, [], 0])
async def test_an_input_may_be_changed_to_anything(
    autojump_clock: MockClock, changed: Json
) -> None:
    async with open_harness() as house:
        run = await asked(house, answer(Allow(tool_input=changed)), RM)
        await run.result()
        [done] = [each for each in await events(run) if isinstance(each, ToolCallCompleted)]
        assert done.tool_input == changed


async def test_what_is_denied_is_not_done_and_the_run_goes_on(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        run = await asked(house, answer(Deny(reason="not that")), RM, Say(text="well then"))
        result = await run.result()
        assert (result.status, result.text) == (RunStatus.COMPLETED, "well then")
        assert (result.tool_calls.denied, result.tool_calls.failed) == (1, 0)
        [denial] = result.permission_denials
        assert (denial.tool_name, denial.reason, denial.by) == ("rm", "not that", "caller")
        [failed] = [each for each in await events(run) if isinstance(each, ToolCallFailed)]
        assert failed.tool_output == "not that"


async def test_to_deny_and_stop_ends_the_run(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        run = await asked(house, answer(Deny(reason="never", stop=True)), RM, Hang())
        result = await run.result()
        assert (result.status, result.reason) == (RunStatus.CANCELLED, EndReason.USER)
        assert result.detail == "never"
        assert result.tool_calls.denied == 1


async def test_without_an_approver_a_request_is_denied_at_once_and_visibly(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        run = await asked(house, None, RM)
        result = await run.result()
        assert trio.current_time() == 0
        [denial] = result.permission_denials
        assert denial.by == "default"
        assert "no approver" in (denial.reason or "")


async def test_who_does_not_answer_in_time_has_denied(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        run = await asked(
            house, answer(Allow(), after=1000), RM, Say(text="on"), clocks=Clocks(approval=30)
        )
        result = await run.result()
        assert trio.current_time() == pytest.approx(30, abs=0.1)
        [denial] = result.permission_denials
        assert denial.by == "deadline"
        assert result.text == "on"


async def test_by_default_a_question_waits_for_two_minutes(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        await (await asked(house, answer(Allow(), after=1000), RM)).result()
        assert trio.current_time() == pytest.approx(120, abs=0.1)


async def test_without_a_deadline_a_question_waits_for_its_answer(
    autojump_clock: MockClock,
) -> None:
    clocks = Clocks(approval=0, idle=10, model=10, tool=10, start=10)
    async with open_harness(clocks=clocks) as house:
        run = await asked(house, answer(Allow(), after=5_000), RM)
        assert (await run.result()).status is RunStatus.COMPLETED
        assert "stall_suspected" not in await stored(house, run.session_id)


async def test_several_questions_are_open_at_once_and_each_has_its_answer(
    autojump_clock: MockClock,
) -> None:
    async def approve(request: ApprovalRequest) -> Decision:
        delays = {"a": 3, "b": 1, "c": 2}
        await trio.sleep(delays[request.tool_name])
        return Deny(reason="b") if request.tool_name == "b" else Allow(tool_input=request.tool_name)

    async with open_harness() as house:
        parts = tuple((Ask(tool=name),) for name in "abc")
        run = await asked(house, approve, Together(parts=parts))
        result = await run.result()
        assert trio.current_time() == pytest.approx(3, abs=0.1)
        found = await events(run)
        decided = [each for each in questions(found) if each.type != "tool_approval_requested"]
        assert [each.tool_name for each in decided] == ["b", "c", "a"]
        done = {e.tool_name: e.tool_input for e in found if isinstance(e, ToolCallCompleted)}
        assert done == {"a": "a", "c": "c"}
        assert result.tool_calls.denied == 1


async def test_questions_of_one_id_are_each_answered(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        parts = tuple((Ask(tool=name, id="7"),) for name in "ab")
        run = await asked(house, answer(Allow(), after=1), Together(parts=parts))
        with trio.fail_after(10):
            result = await run.result()
        assert result.tool_calls.count == {"a": 1, "b": 1}


async def test_a_question_that_is_taken_back_is_closed(autojump_clock: MockClock) -> None:
    thinking = trio.Event()
    left = trio.Event()

    async def approve(_: ApprovalRequest) -> Decision:
        thinking.set()
        try:
            await trio.sleep(1000)
        finally:
            left.set()
        return Allow()

    async with open_harness() as house:
        run = await asked(
            house, approve, Ask(tool="rm", withdraw_after=5), Say(text="on"), Wait(seconds=1)
        )
        await thinking.wait()
        await trio.sleep(5.5)
        assert left.is_set()
        result = await run.result()
        assert result.text == "on"
        [_, closed] = questions(await events(run))
        assert isinstance(closed, ToolApprovalDenied)
        assert closed.by == "provider"


async def broken(request: ApprovalRequest) -> Decision:
    await trio.lowlevel.checkpoint()
    raise LookupError(request.tool_name)


def says(nonsense: object) -> Callable[[ApprovalRequest], Awaitable[object]]:
    async def approve(_: ApprovalRequest) -> object:
        await trio.lowlevel.checkpoint()
        return nonsense

    return approve


@pytest.mark.parametrize(
    "approve",
    [
        broken,
        says(None),
        says(True),
        says("yes"),
        says(Allow(tool_input=object())),  # type: ignore[arg-type]
    ],
    ids=["raises", "None", "True", "yes", "no JSON"],
)
async def test_an_approver_that_cannot_answer_denies_visibly_and_does_no_harm(
    autojump_clock: MockClock, approve: Any
) -> None:
    async with open_harness() as house:
        run = await asked(house, approve, RM, Say(text="on"))
        result = await run.result()
        assert (result.status, result.text) == (RunStatus.COMPLETED, "on")
        assert result.tool_calls.denied == 1
        [denial] = result.permission_denials
        assert denial.by == "default"
        names = [event.type for event in await events(run)]
        assert names.index("error_occurred") < names.index("tool_approval_denied")


async def test_an_open_question_delays_no_other_run(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        asking = [await asked(house, answer(Allow(), after=100), RM) for _ in range(20)]
        before = trio.current_time()
        other = await house.result(Repeat(times=50, steps=(Say(text="x"), Wait(seconds=0.1))))
        assert other.status is RunStatus.COMPLETED
        assert trio.current_time() - before == pytest.approx(5, abs=0.1)
        for run in asking:
            assert (await run.result()).status is RunStatus.COMPLETED


async def test_a_question_is_stored_before_it_is_put_and_its_answer_before_it_is_given(
    autojump_clock: MockClock,
) -> None:
    stored_when_asked: list[list[str]] = []

    async with open_harness() as house:

        async def approve(request: ApprovalRequest) -> Decision:
            stored_when_asked.append(await stored(house, request.session_id))
            return Allow()

        run = await asked(house, approve, RM, Hang())
        await trio.sleep(1)
        assert stored_when_asked[0][-1] == "tool_approval_requested"
        names = await stored(house, run.session_id)
        assert names.index("tool_approval_granted") < names.index("tool_call_started")
        run.cancel()


async def test_an_answer_overtakes_a_flood_without_a_reader(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        flood = (Flood(events=2_000, size=10_000),)
        run = await asked(
            house, answer(Allow(), after=0.001), Together(parts=((RM, Say(text="done")), flood))
        )
        result = await run.result()
        assert result.tool_calls.count == {"rm": 1}
        names = await stored_types(house, run)
        place = names.index("tool_approval_granted")
        assert place < names.index("tool_call_started")


async def test_an_answer_passes_by_a_flood_while_an_interrupt_is_not_heard(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(clocks=Clocks(close=5)) as house:
        session = await house.manager.open_session("actor", approve=answer(Deny(), after=1))
        without_end = Repeat(times=1000, steps=(Flood(events=20, size=10_000), Wait(seconds=0.05)))
        parts = ((RM, Say(text="answered")), (without_end,))
        run = await session.submit(run_scripted(Together(parts=parts), interrupt="hang"))
        await trio.sleep(0.5)
        run.cancel()
        await trio.sleep(0.6)
        found = [event.type async for event in house.manager.events(run.id)]
        assert {"tool_approval_denied", "tool_call_failed"} <= set(found)
        assert run.status is RunStatus.RUNNING


async def stored_types(house: ManagerHarness, run: RunHandle) -> list[str]:
    return [event.type async for event in await house.manager.events(run.id)]


@pytest.mark.parametrize(
    ("mode", "step", "by"),
    [
        ("plan", Ask(tool="cat", effect="read"), "mode"),
        ("full_auto", Ask(tool="rm", effect="command"), "mode"),
        ("dangerously_skip_permissions", Ask(tool="rm", effect="command"), "mode"),
        ("full_auto", Ask(tool="quiz", effect="question"), "caller"),
        ("dangerously_skip_permissions", Ask(tool="quiz", effect="question"), "caller"),
        ("accept_edits", Ask(tool="ed", effect="edit", paths=("{cwd}/a",)), "mode"),
        ("accept_edits", Ask(tool="ed", effect="edit", paths=("/etc/passwd",)), "caller"),
        ("accept_edits", Ask(tool="ed", effect="edit", paths=("{cwd}/../a",)), "caller"),
        ("accept_edits", Ask(tool="ed", effect="edit"), "caller"),
        ("accept_edits", Ask(tool="sh", effect="command", paths=("{cwd}/a",)), "caller"),
        ("default", Ask(tool="cat", effect="read"), "caller"),
    ],
)
async def test_no_approver_is_asked_about_what_the_mode_allows(
    autojump_clock: MockClock, mode: str, step: Ask, by: str, tmp_path: Path
) -> None:
    paths = tuple(path.format(cwd=tmp_path) for path in step.paths)
    step = Ask(tool=step.tool, effect=step.effect, paths=paths)
    async with open_harness() as house:
        session = await house.manager.open_session(
            "actor", cwd=tmp_path, permission_mode=PermissionMode(mode), approve=answer(Allow())
        )
        run = await session.submit(run_scripted(step))
        await run.result()
        [_, granted] = questions(await events(run))
        assert (granted.type, granted.by) == ("tool_approval_granted", by)


@pytest.mark.parametrize(
    ("path", "by"), [("out/a", "caller"), ("in/a", "mode"), ("in/new/a", "mode")]
)
async def test_an_edit_is_where_its_links_lead(
    autojump_clock: MockClock, path: str, by: str, tmp_path: Path
) -> None:
    real, cwd, elsewhere = tmp_path / "real", tmp_path / "cwd", tmp_path / "elsewhere"
    for each in (real, real / "inner", elsewhere):
        each.mkdir()
    cwd.symlink_to(real)
    (real / "out").symlink_to(elsewhere)
    (real / "in").symlink_to(real / "inner")
    async with open_harness() as house:
        session = await house.manager.open_session(
            "actor", cwd=cwd, permission_mode="accept_edits", approve=answer(Allow())
        )
        run = await session.submit(
            run_scripted(Ask(tool="ed", effect="edit", paths=(str(cwd / path),)))
        )
        await run.result()
        [_, granted] = questions(await events(run))
        assert (granted.type, granted.by) == ("tool_approval_granted", by)


@pytest.mark.parametrize("effect", ["edit", "command", "network", "other"])
async def test_who_only_plans_is_denied_every_effect(
    autojump_clock: MockClock, effect: Any
) -> None:
    async with open_harness() as house:
        run = await asked(house, answer(Allow()), Ask(tool="x", effect=effect), mode="plan")
        [denial] = (await run.result()).permission_denials
        assert denial.by == "mode"


async def test_a_runs_own_approve_comes_before_its_sessions(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor", approve=answer(Deny()))
        run = await session.submit(run_scripted(RM), approve=answer(Allow()))
        assert (await run.result()).tool_calls.denied == 0


@pytest.mark.parametrize("whose", ["nobody's", "session's", "run's"])
async def test_an_adapter_knows_whether_there_is_an_approver(
    autojump_clock: MockClock, whose: str
) -> None:
    attended: list[bool] = []

    class Looks(ProviderAdapter):
        name = "looks"

        async def run(self, run: RunContext) -> None:
            attended.append(run.attended)
            await run.finish()

    approve = answer(Allow())
    async with open_harness(others={"looks": Looks}) as house:
        session = await house.manager.open_session(
            "looks", approve=approve if whose == "session's" else None
        )
        await (await session.submit("x", approve=approve if whose == "run's" else None)).result()
    assert attended == [whose != "nobody's"]


async def test_the_deadline_holds_for_every_approver_however_stubborn(
    autojump_clock: MockClock,
) -> None:
    async def approve(request: ApprovalRequest) -> Decision:
        if request.tool_name == "rm":
            with trio.CancelScope(shield=True):
                await trio.sleep(500)
        return Allow()

    async with open_harness(clocks=Clocks(approval=5)) as house:
        run = await asked(house, approve, RM, Say(text="on"), Ask(tool="ls", id="7"), Hang())
        await trio.sleep(5.1)
        [_, denied, *_] = questions(await house_events(house, run))
        assert (denied.type, denied.by) == ("tool_approval_denied", "deadline")
        await trio.sleep(600)
        found = questions(await house_events(house, run))
        assert [each.type for each in found if each.tool_name == "rm"] == [
            "tool_approval_requested",
            "tool_approval_denied",
        ]
        run.cancel()


async def house_events(house: ManagerHarness, run: RunHandle) -> list[AnyEvent]:
    return [event async for event in house.manager.events(run.id)]


async def test_nothing_is_allowed_any_more_in_a_run_that_is_to_end(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor", approve=answer(Allow(), after=3))
        run = await session.submit(run_scripted(RM, interrupt="ignore"))
        await trio.sleep(1)
        run.cancel()
        result = await run.result()
        assert "tool_call_completed" not in await stored(house, run.session_id)
        assert [denial.reason for denial in result.permission_denials] == ["the run is over"]


async def test_a_request_after_the_end_is_answered_without_the_approver(
    autojump_clock: MockClock,
) -> None:
    heard: list[Decision] = []
    asked_for: list[str] = []

    class AsksLate(ProviderAdapter):
        name = "late"

        async def run(self, run: RunContext) -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.ask, run, "open at the end")
                await trio.sleep(1)
                await run.finish()
                await trio.sleep(1)
                nursery.start_soon(self.ask, run, "after it")

        async def ask(self, run: RunContext, tool: str) -> None:
            heard.append(await run.ask(ApprovalRequest(tool_name=tool)))

    async def approve(request: ApprovalRequest) -> Decision:
        asked_for.append(request.tool_name)
        await trio.sleep(1000)
        return Allow()

    async with open_harness(others={"late": AsksLate}) as house:
        session = await house.manager.open_session("late", approve=approve)
        run = await session.submit("x")
        with trio.fail_after(4):
            result = await run.result()
        assert [(type(each), each.reason) for each in heard] == 2 * [(Deny, "the run is over")]
        assert asked_for == ["open at the end"]
        assert len(result.permission_denials) == 1


async def test_a_stubborn_approve_does_not_hold_the_session_after_its_run(
    autojump_clock: MockClock,
) -> None:
    async def approve(_: ApprovalRequest) -> Decision:
        with trio.CancelScope(shield=True):
            await trio.sleep(40)
        return Allow()

    async with open_harness() as house:
        session = await house.manager.open_session("actor", approve=approve)
        await (await session.submit(run_scripted(Ask(tool="x", withdraw_after=1)))).result()
        await trio.sleep(7)
        with trio.fail_after(5):
            assert (await (await session.submit("next")).result()).text == "next"


async def test_an_adapter_that_asks_without_end_is_stopped_by_its_own_crash(
    autojump_clock: MockClock,
) -> None:
    class AsksWithoutEnd(ProviderAdapter):
        name = "asks"

        async def run(self, run: RunContext) -> None:
            async with trio.open_nursery() as nursery:
                for _ in range(MOST_QUESTIONS + 1):
                    nursery.start_soon(run.ask, ApprovalRequest(tool_name="x"))

    async def approve(_: ApprovalRequest) -> Decision:
        await trio.sleep_forever()
        raise AssertionError

    async with open_harness(others={"asks": AsksWithoutEnd}) as house:
        session = await house.manager.open_session("asks", approve=approve)
        neighbour = await house.manager.open_session("actor")
        result = await (await session.submit("x")).result()
        assert result.failure is not None
        assert result.failure.kind is FailureKind.ADAPTER_CRASHED
        assert f"{MOST_QUESTIONS} runs, questions" in result.failure.message
        assert (await (await neighbour.submit("next")).result()).text == "next"
