"""Answers to a provider's questions: from the permission mode, the caller, or the timeout."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import msgspec
import trio

from sessionmgr.adapter.question import Allow, Deny
from sessionmgr.model import ErrorOccurred, Failure, FailureKind, StallSuspected, encode_json

if TYPE_CHECKING:
    from sessionmgr.adapter.question import Approve, Decision
    from sessionmgr.adapter.run_control import Question
    from sessionmgr.manager.run_state import RunState
    from sessionmgr.model import Json

log: Final = logging.getLogger("sessionmgr.manager")


async def decide(entry: RunState, question: Question) -> None:
    """Find the answer to a question, and send it to the recorder, unless it is withdrawn."""
    with question.scope:
        decision = question.ruled
        if decision is None:
            decision = await _ask(entry, question, entry.approve)
        else:
            await trio.lowlevel.checkpoint()
        entry.live.commands.decide(entry, question, decision)


async def _ask(entry: RunState, question: Question, approve: Approve | None) -> Decision:
    if approve is None:
        await trio.lowlevel.checkpoint()
        return Deny(reason="nobody is there to be asked", by="default")
    patience = entry.clocks.of("approval")
    if not patience:
        return await _answer(entry, question, approve)
    late = Deny(reason=f"nobody answered within {patience:g} s", by="deadline")
    timeout = _Timeout(patience)
    decision: Decision = late
    async with trio.open_nursery() as nursery:
        nursery.start_soon(timeout.run, entry, question, late, nursery.cancel_scope)
        answered = await _answer(entry, question, approve)
        if not timeout.has_passed:
            decision = answered
        nursery.cancel_scope.cancel()
    return decision


async def _answer(entry: RunState, question: Question, approve: Approve) -> Decision:
    try:
        return _checked(await approve(question.request))
    except Exception as error:
        log.exception("event=approve_crashed run=%s", entry.id)
        message = f"approve() raised {type(error).__name__}: {error}"
        failure = Failure(kind=FailureKind.APPROVAL_UNANSWERED, message=message)
        entry.live.commands.timer(entry, ErrorOccurred(failure=failure))
        return Deny(reason=message, by="default")


class _Timeout:
    """The timeout of one question: it holds even if `approve` does not react to its cancel."""

    def __init__(self, patience: float) -> None:
        self._patience: Final = patience
        self.has_passed = False

    async def run(
        self, entry: RunState, question: Question, late: Decision, asking: trio.CancelScope
    ) -> None:
        """Warn at half time, and decide at the end."""
        await trio.sleep(self._patience / 2)
        _note(entry, question, self._patience, self._patience / 2)
        await trio.sleep(self._patience / 2)
        self.has_passed = True
        _note(entry, question, self._patience, self._patience)
        entry.live.commands.decide(entry, question, late)
        asking.cancel()


def _note(entry: RunState, question: Question, limit: float, waited: float) -> None:
    """Have the record say that a question still waits, or has waited for too long."""
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
    entry.live.commands.timer(entry, stalled)


def _checked(decision: object) -> Decision:
    """Return the decision, if it is one that can be stored."""
    if not isinstance(decision, Allow | Deny):
        raise TypeError(f"it returned {decision!r}, which is neither Allow nor Deny")
    encode_json(msgspec.to_builtins(decision))
    return decision
