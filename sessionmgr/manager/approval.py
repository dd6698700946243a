"""Who answers a provider's question: the permission mode, the caller, or the clock."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import msgspec
import trio

from sessionmgr.manager.news import Decided, Noted
from sessionmgr.model import ErrorOccurred, Failure, FailureKind, encode_json
from sessionmgr.provider.question import Allow, Deny

if TYPE_CHECKING:
    from sessionmgr.manager.entry import RunEntry
    from sessionmgr.provider.course import Question
    from sessionmgr.provider.question import Decision

log: Final = logging.getLogger("sessionmgr.manager")


async def decide(entry: RunEntry, question: Question) -> None:
    """Find the answer to a question and hand it in. One that is withdrawn needs none."""
    with question.scope:
        decision = question.ruled
        if decision is None:
            decision = await _ask(entry, question)
        else:
            await trio.lowlevel.checkpoint()
        entry.live.intake.put(Decided(entry, question, decision))


async def _ask(entry: RunEntry, question: Question) -> Decision:
    if entry.approve is None:
        return Deny(reason="nobody is there to be asked", by="default")
    patience = entry.clocks.of("approval")
    with trio.move_on_after(patience or float("inf")):  # noqa: ASYNC912  # approve() may answer at once
        try:
            return _checked(await entry.approve(question.request))
        except Exception as error:
            log.exception("event=approve_crashed run=%s", entry.id)
            message = f"approve() raised {type(error).__name__}: {error}"
            failure = Failure(kind=FailureKind.APPROVAL_UNANSWERED, message=message)
            entry.live.intake.put(Noted(entry, (ErrorOccurred(failure=failure),)))
            return Deny(reason=message, by="default")
    return Deny(reason=f"nobody answered within {patience:g} s", by="deadline")


def _checked(decision: object) -> Decision:
    """Return the decision, if it is one that can be written down."""
    if not isinstance(decision, Allow | Deny):
        raise TypeError(f"it returned {decision!r}, which is neither Allow nor Deny")
    encode_json(msgspec.to_builtins(decision))
    return decision
