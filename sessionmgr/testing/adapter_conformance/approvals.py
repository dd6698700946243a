"""The behaviours of requests for approval, and of messages to a running turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.adapter import Allow, Deny
from sessionmgr.model import PermissionMode, RunStatus
from sessionmgr.testing.adapter_conformance.behaviour import AdapterBehaviourGroup

if TYPE_CHECKING:
    from sessionmgr.adapter import ApprovalRequest, Decision
    from sessionmgr.testing.adapter_conformance.harness import ConformanceHarness

ASKING: Final = AdapterBehaviourGroup()
MOST_EVENTS: Final = 8


class DelayedApprover:
    """An approver that answers once the test allows it."""

    def __init__(self, answer: Decision) -> None:
        self.answer: Final = answer
        self.requests: Final[list[ApprovalRequest]] = []
        self.asked: Final = trio.Event()
        self.may_answer: Final = trio.Event()

    async def approve(self, request: ApprovalRequest) -> Decision:
        """Wait for the test, then answer."""
        self.requests.append(request)
        self.asked.set()
        await self.may_answer.wait()
        return self.answer


@ASKING.register("asks")
async def an_allowed_call_is_made(stage: ConformanceHarness) -> None:
    assert stage.case.asks is not None
    judge = DelayedApprover(Allow())
    judge.may_answer.set()
    played = await stage.run_to_end(stage.case.asks, approve=judge.approve)
    assert len(judge.requests) == 1
    assert judge.requests[0].tool_name
    assert played.result.status == RunStatus.COMPLETED, played.result.failure
    assert {"tool_approval_requested", "tool_approval_granted"} <= set(played.types)
    assert stage.case.asks.text in {None, played.result.text}


@ASKING.register("asks")
async def a_denied_call_is_not_made_and_is_in_the_result(stage: ConformanceHarness) -> None:
    assert stage.case.asks is not None
    judge = DelayedApprover(Deny(reason="better not"))
    judge.may_answer.set()
    played = await stage.run_to_end(stage.case.asks, approve=judge.approve)
    assert "tool_call_completed" not in played.types
    (denial,) = played.result.permission_denials
    assert denial.reason == "better not"


@ASKING.register("asks")
async def without_an_approver_calls_are_denied(stage: ConformanceHarness) -> None:
    assert stage.case.asks is not None
    played = await stage.run_to_end(stage.case.asks)
    assert "tool_call_completed" not in played.types
    assert len(played.result.permission_denials) == 1


@ASKING.register("asks")
async def full_auto_asks_for_no_approval(stage: ConformanceHarness) -> None:
    assert stage.case.asks is not None
    if PermissionMode.FULL_AUTO not in stage.supported_modes(stage.case.asks):
        return
    judge = DelayedApprover(Deny())
    session = await stage.session("full_auto")
    played = await stage.run_to_end(stage.case.asks, session, approve=judge.approve)
    assert judge.requests == []
    assert played.result.status == RunStatus.COMPLETED, played.result.failure


@ASKING.register("asks")
async def a_run_can_be_cancelled_while_it_asks(stage: ConformanceHarness) -> None:
    assert stage.case.asks is not None
    judge = DelayedApprover(Allow())
    run = await stage.submit(stage.case.asks, approve=judge.approve)
    await judge.asked.wait()
    run.cancel()
    assert (await stage.result_in_time(run)).status == RunStatus.CANCELLED
    await stage.collect(run)


@ASKING.register("asks")
async def a_message_to_a_running_turn_is_neither_lost_nor_repeated(
    stage: ConformanceHarness,
) -> None:
    assert stage.case.asks is not None
    judge = DelayedApprover(Allow())
    run = await stage.submit(stage.case.asks, approve=judge.approve)
    await judge.asked.wait()
    follow_up = await run.append(stage.case.answers.prompt)
    judge.may_answer.set()
    first = await stage.collect(run)
    assert first.result.status == RunStatus.COMPLETED, first.result.failure
    if not follow_up.accepted:
        second = await stage.collect(follow_up.run)
        assert second.result.status == RunStatus.COMPLETED, second.result.failure


@ASKING.register()
async def a_message_at_any_time_is_neither_lost_nor_repeated(stage: ConformanceHarness) -> None:
    played = await stage.run_to_end(stage.case.answers)
    for place in stage.case.moments_of(len(played.events), MOST_EVENTS):
        run = await stage.submit(stage.case.answers)
        seen = 0
        async for _ in run:
            if seen == place:
                follow_up = await run.append(stage.case.answers.prompt)
                result = (await stage.collect(follow_up.run)).result
                assert result.status == RunStatus.COMPLETED, f"at event {place}: {result}"
            seen += 1
        assert (await stage.collect(run)).result.status == RunStatus.COMPLETED
    # The invariants check that each message was either sent once, or dropped and became a run.
