"""Where the next attempt at a job starts: from the beginning, in its session, or not undecided.

A job whose tool calls are on record is never started over without an explicit decision: what its
agent has done would be done again. It is resumed in its provider session; where that cannot be, it
ends, its result says so, and `--retry-from fresh` is the decision to start it over.
"""

from __future__ import annotations

from enum import Enum, StrEnum, auto
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
from msgspec.structs import replace

from sessionmgr.model import FailureKind, RunResult, RunStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.batch.host import Ended

R = TypeVar("R", bound=RunResult)


class RetryFrom(StrEnum):
    """What a batch does with a job that ended half way and had made tool calls."""

    SESSION = "session"
    """Resume it in its provider session; where that cannot be, leave it for a decision."""
    FRESH = "fresh"
    """Start it over, although its tool calls may then be made again."""
    ASK = "ask"
    """Leave it for a decision."""


class Start(Enum):
    """How the next attempt at a job begins."""

    OVER = auto()
    RESUME = auto()
    UNDECIDED = auto()
    """It does not: starting over would repeat tool calls, and there is no decision to do so."""


class Basis(msgspec.Struct, frozen=True):
    """What a job's next attempt has to build on."""

    resumable: bool = False
    """Whether its provider session can go on."""
    side_effects: bool = False
    """Whether tool calls are on record since it was last started over."""

    @property
    def packed(self) -> int:
        """Both as one number, which the ledger keeps: 1 and 2, or neither."""
        return self.resumable + 2 * self.side_effects

    def start(self, policy: RetryFrom) -> Start:
        """Return how the next attempt begins under a policy."""
        if policy is RetryFrom.FRESH:
            return Start.OVER
        if self.side_effects and (policy is RetryFrom.ASK or not self.resumable):
            return Start.UNDECIDED
        return Start.RESUME if self.resumable else Start.OVER


def unpacked(number: int) -> Basis:
    """Return what the ledger keeps of a basis."""
    return Basis(bool(number & 1), bool(number & 2))


def lacked_room(result: RunResult) -> bool:
    """Say whether the system had no room for a run's child: too few descriptors, say."""
    failure = result.failure
    return failure is not None and failure.kind is FailureKind.START_FAILED and failure.retryable


def side_effects(result: RunResult) -> bool:
    """Say whether a run has recorded a tool call that was not denied."""
    if lacked_room(result):
        return False  # what a shell's run records as a call is the command that never began
    calls = result.tool_calls
    return sum(calls.count.values()) > calls.denied


# These lie outside the session: that they come again says nothing about it.
_ELSEWHERE: Final = frozenset(
    {
        FailureKind.RATE_LIMITED,
        FailureKind.QUOTA_EXHAUSTED,
        FailureKind.OVERLOADED,
        FailureKind.AUTH_FAILED,
        FailureKind.BILLING,
        FailureKind.BUDGET_EXCEEDED,
        FailureKind.TIMED_OUT,
        FailureKind.SESSION_BUSY,
        FailureKind.STORE_FAILED,
        FailureKind.MANAGER_CRASHED,
        FailureKind.CLI_NOT_FOUND,
        FailureKind.START_FAILED,
    }
)


class Past(msgspec.Struct, frozen=True):
    """What came of an earlier attempt, and in which of our sessions."""

    session: str
    failure: str | None


def is_poisoned(past: Sequence[Past]) -> bool:
    """Say whether a session fails in the same way each time it is resumed; the newest comes first.

    That is so after two attempts that resumed it: the third attempt in it, at the least.
    """
    if len(past) < 3:
        return False
    last, before, first = past[:3]
    return (
        last.session == before.session == first.session
        and last.failure is not None
        and last.failure == before.failure
        and last.failure not in _ELSEWHERE
    )


def basis_after(ended: Ended, before: Basis, past: Sequence[Past]) -> Basis:
    """Return what an attempt leaves to build on; `before` is what it was begun with itself."""
    result = ended.result
    resumable = ended.resumable
    if not _is_lost(result) and not _has_reached_its_session(result):
        resumable = before.resumable  # the session is as it was
    return Basis(
        resumable=resumable and not is_poisoned(past),
        side_effects=before.side_effects or ended.side_effects or side_effects(result),
    )


def _has_reached_its_session(result: RunResult) -> bool:
    return result.provider_session_id is not None and not _at_start(result)


def _at_start(result: RunResult) -> bool:
    return result.failure is not None and result.failure.phase == "start"


def _is_lost(result: RunResult) -> bool:
    return result.failure is not None and result.failure.kind is FailureKind.SESSION_NOT_FOUND


def starts_over_for_want_of_a_session(result: RunResult, basis: Basis) -> bool:
    """Say whether an attempt only found that the session to resume is gone, and nothing is lost."""
    return _is_lost(result) and not basis.side_effects and not basis.resumable


def ended_by_itself(result: RunResult) -> bool:
    """Say whether a command ran to its own end, so that its outcome is known."""
    failure = result.failure
    return (
        result.status is RunStatus.FAILED
        and failure is not None
        and failure.kind is FailureKind.PROCESS_EXITED
        and failure.exit_code is not None
    )


class Conclusion(msgspec.Struct, frozen=True, kw_only=True):
    """What is made of the end of an attempt."""

    told: RunResult
    """Its result, which says what decision is wanted, if one is."""
    basis: Basis
    """What another attempt builds on that is not asked for by the user."""
    kept: Basis
    """What the next attempt builds on when the user runs the batch again."""


def conclude(
    ended: Ended, before: Basis, past: Sequence[Past], *, resumes: bool, is_command: bool
) -> Conclusion:
    """Return what is made of the end of an attempt that was begun with `before`.

    `resumes` says whether its provider can resume sessions at all. With `is_command` the prompt is
    a command: one that ended by itself is run again by the user's running the batch again.
    """
    result = ended.result
    basis = basis_after(ended, before, past)
    if is_command and _at_start(result):
        basis = before  # its call is on record, and nothing has run
    kept = Basis() if is_command and ended_by_itself(result) else basis
    told = with_decision(result, basis, why_not=why_not_resumed(result, past, resumes=resumes))
    return Conclusion(told=told, basis=basis, kept=kept)


def with_decision(result: R, basis: Basis, *, why_not: str) -> R:
    """Return a result that says which decision is wanted; `why_not` its session is not resumed."""
    if basis.resumable:
        how = "--retry-from session resumes its session, --retry-from fresh starts it over"
    else:
        how = f"{why_not}: --retry-from fresh starts it over, and may repeat them"
    if result.failure is None:
        return replace(result, detail=_joined(result.detail or "", how))
    failure = replace(result.failure, message=_joined(result.failure.message, how))
    return replace(result, failure=failure)


_MADE: Final = "it has made tool calls, and "


def _joined(said: str, how: str) -> str:
    said = said.partition(_MADE)[0].removesuffix("; ")  # of an earlier time
    return f"{said}; {_MADE}{how}" if said else f"{_MADE}{how}"


def why_not_resumed(result: RunResult, past: Sequence[Past], *, resumes: bool) -> str:
    """Say why a session is not resumed after a run."""
    if not resumes:
        return f"{result.provider} cannot resume a session"
    if is_poisoned(past):
        kind = past[0].failure
        return f"its session seems unusable ({kind} twice in a row after it was resumed)"
    if _is_lost(result):
        return "its provider session is gone"
    if result.provider_session_id is None:
        return "its provider session is not known"
    return "its provider session cannot go on"
