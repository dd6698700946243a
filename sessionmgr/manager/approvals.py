"""Decisions about approval requests: by the permission mode, the caller or the timeout."""

from __future__ import annotations

import logging
import os
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

import msgspec
import trio

from sessionmgr.adapter import Allow, Deny
from sessionmgr.manager.errors import InboxFull
from sessionmgr.manager.inbox import MOST_QUESTIONS
from sessionmgr.manager.pending_approval import PendingApproval
from sessionmgr.manager.validate_events import round_trip
from sessionmgr.model import (
    ErrorOccurred,
    Failure,
    FailureKind,
    IdKind,
    PermissionMode,
    StallSuspected,
    encode_json,
    new_id,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sessionmgr.adapter import ApprovalRequest, Approve, Decision
    from sessionmgr.manager.run_state import RunState
    from sessionmgr.model import Json

log: Final = logging.getLogger("sessionmgr.manager")


async def request_approval(run: RunState, /, request: ApprovalRequest) -> Decision:
    """Store an approval request of the provider, and return the stored decision.

    If the call is cancelled, the provider no longer needs the decision.

    Raises:
        InboxFull: Too many requests wait. An adapter that does not handle this crashes its run.
    """
    if len(run.questions) >= MOST_QUESTIONS:
        raise InboxFull(len(run.questions), run.inbox.pending)
    approval_id = request.approval_id
    if not approval_id or approval_id in run.questions:  # providers reuse their ids
        approval_id = new_id(IdKind.APPROVAL)
    request = msgspec.structs.replace(
        round_trip(request),
        approval_id=approval_id,
        session_id=run.session_id,
        run_id=run.run_id,
        provider=run.provider,
        cwd=run.spec.cwd,
    )
    directories = (run.spec.cwd, *run.spec.directories)
    ruled = decision_by_mode(run.spec.permission.asked, request, directories)
    is_awaited = ruled is None and run.plan.wish.approve is not None
    limit = run.plan.clocks.of("approval") if is_awaited else 0
    timeout = float(limit) if limit else None  # an int would be stored as `15`, and read as 15.0
    question = PendingApproval(request, ruled, timeout=timeout)
    run.note_activity()
    run.session_state.commands.request_approval(run, question)
    run.questions[approval_id] = question
    try:
        await question.answered.wait()
    finally:
        run.questions.pop(approval_id, None)
        if not question.answered.is_set():
            question.scope.cancel()
            run.session_state.commands.withdraw_approval(run, question)
    assert question.decision is not None
    return question.decision


async def decide_approval(entry: RunState, question: PendingApproval) -> None:
    """Find the decision and send it to the recorder, unless the request is withdrawn."""
    with question.scope:
        decision = question.ruled
        if decision is None:
            decision = await _find_decision(entry, question, entry.plan.wish.approve)
        else:
            await trio.lowlevel.checkpoint()
        entry.session_state.commands.decide_approval(entry, question, decision)


async def _find_decision(
    entry: RunState, question: PendingApproval, approve: Approve | None
) -> Decision:
    if approve is None:
        await trio.lowlevel.checkpoint()
        return Deny(reason="no approver is configured", by="default")
    limit = entry.plan.clocks.of("approval")
    if not limit:
        return await _call_approver(entry, question, approve)
    late = Deny(reason=f"no answer within {limit:g} s", by="deadline")
    timeout = _ApprovalTimeout(limit)
    decision: Decision = late
    async with trio.open_nursery() as nursery:
        nursery.start_soon(timeout.run, entry, question, late, nursery.cancel_scope)
        answered = await _call_approver(entry, question, approve)
        if not timeout.has_passed:
            decision = answered
        nursery.cancel_scope.cancel()
    return decision


async def _call_approver(entry: RunState, question: PendingApproval, approve: Approve) -> Decision:
    try:
        return _validated_decision(await approve(question.request))
    except Exception as error:
        log.exception("The approve function raised. run=%s", entry.id)
        message = f"approve() raised {type(error).__name__}: {error}"
        failure = Failure(kind=FailureKind.APPROVAL_UNANSWERED, message=message)
        entry.session_state.commands.record_events(entry, ErrorOccurred(failure=failure))
        return Deny(reason=message, by="default")


class _ApprovalTimeout:
    """The timeout of one request: it holds even if `approve` ignores its cancellation."""

    def __init__(self, limit: float) -> None:
        self._limit: Final = limit
        self.has_passed = False

    async def run(
        self, entry: RunState, question: PendingApproval, late: Decision, asking: trio.CancelScope
    ) -> None:
        """Warn at half time, and deny at the end."""
        await trio.sleep(self._limit / 2)
        _note_waiting(entry, question, self._limit, self._limit / 2)
        await trio.sleep(self._limit / 2)
        self.has_passed = True
        _note_waiting(entry, question, self._limit, self._limit)
        entry.session_state.commands.decide_approval(entry, question, late)
        asking.cancel()


def _note_waiting(entry: RunState, question: PendingApproval, limit: float, waited: float) -> None:
    """Record that a request still waits, or has waited for too long."""
    request = question.request
    evidence: dict[str, Json] = {
        "clock": "approval",
        "limit": limit,
        "approval_id": request.approval_id,
        "tool_call_id": request.tool_call_id,
        "tool_name": request.tool_name,
    }
    stalled = StallSuspected(
        state="approval", silent_for=float(waited), evidence=evidence, synthetic=True
    )
    entry.session_state.commands.record_events(entry, stalled)


def _validated_decision(decision: object) -> Decision:
    """Return the decision if it can be stored."""
    if not isinstance(decision, Allow | Deny):
        raise TypeError(f"it returned {decision!r}, which is neither Allow nor Deny")
    encode_json(msgspec.to_builtins(decision))
    return decision


def decision_by_mode(
    mode: PermissionMode, request: ApprovalRequest, directories: Iterable[str]
) -> Decision | None:
    """Return the decision of the permission mode; None leaves it to the caller."""
    match mode:
        case PermissionMode.PLAN:
            if request.effect == "read":
                return Allow(by="mode")
            return Deny(reason="the run only plans: nothing may be changed", by="mode")
        case PermissionMode.ACCEPT_EDITS if request.effect == "edit":
            return Allow(by="mode") if _all_within(request.paths, directories) else None
        case PermissionMode.FULL_AUTO | PermissionMode.DANGEROUSLY_SKIP_PERMISSIONS:
            # A mode allows effects; it does not choose between the answers to a question.
            return None if request.effect == "question" else Allow(by="mode")
        case _:
            return None


def _all_within(paths: tuple[str, ...], directories: Iterable[str]) -> bool:
    """Return whether all `paths` are known to be inside one of the directories, after links.

    The meaning of `..` behind a link depends on the program that reads it, so such a path is never
    known to be inside.
    """
    inside = [os.path.realpath(directory) for directory in directories]
    return bool(paths) and all(
        ".." not in PurePath(path).parts
        and PurePath(path).is_absolute()
        and "\0" not in path
        and any(PurePath(os.path.realpath(path)).is_relative_to(each) for each in inside)
        for path in paths
    )
