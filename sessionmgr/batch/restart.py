"""Where the next attempt at a job starts: at the beginning, in its session, or undecided.

A job with recorded tool calls starts over only by an explicit decision, because its agent would
repeat them. It is resumed in its provider session. If that is impossible, it ends, its result says
so, and `--retry-from fresh` is the decision to start it over.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum, StrEnum, auto
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
from msgspec.structs import replace

from sessionmgr.model import FailureKind, RunResult, RunStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.batch.host import AttemptResult

R = TypeVar("R", bound=RunResult)


class RetryFrom(StrEnum):
    """What a batch does with an incomplete job that has made tool calls."""

    SESSION = "session"
    """Resume it in its provider session; if that is impossible, leave it for a decision."""
    FRESH = "fresh"
    """Start it over, which may repeat its tool calls."""
    ASK = "ask"
    """Leave it for a decision."""


class StartMode(Enum):
    """How the next attempt at a job begins."""

    OVER = auto()
    RESUME = auto()
    UNDECIDED = auto()
    """No attempt: starting over would repeat tool calls, and the user has not allowed that."""


class Basis(msgspec.Struct, frozen=True):
    """The state from which a job's next attempt starts."""

    resumable: bool = False
    """Whether its provider session is resumable."""
    side_effects: bool = False
    """Whether tool calls are recorded since it last started over."""

    @property
    def packed(self) -> int:
        """Both flags as one number for the ledger: bits 1 and 2."""
        return self.resumable + 2 * self.side_effects

    def start(self, policy: RetryFrom) -> StartMode:
        """Return how the next attempt begins under a policy."""
        if policy is RetryFrom.FRESH:
            return StartMode.OVER
        if self.side_effects and (policy is RetryFrom.ASK or not self.resumable):
            return StartMode.UNDECIDED
        return StartMode.RESUME if self.resumable else StartMode.OVER


def unpack_basis(number: int) -> Basis:
    """Decode a basis from the ledger."""
    return Basis(bool(number & 1), bool(number & 2))


def lacked_resources(result: RunResult) -> bool:
    """Return whether the system had no room for a run's child, such as too few descriptors."""
    failure = result.failure
    return failure is not None and failure.kind is FailureKind.START_FAILED and failure.retryable


def has_side_effects(result: RunResult) -> bool:
    """Return whether a run has recorded a tool call that was not denied."""
    if lacked_resources(result):
        return False  # the recorded call is the command, which never started
    # Denials cannot be subtracted from calls: a denial may concern something else than a call, and
    # one call may be denied twice. A call whose question the provider has withdrawn counts as made:
    # a hook, for example, may have allowed it.
    denials = [each for each in result.permission_denials if each.by != "provider"]
    calls = {(each.tool_name, each.tool_call_id) for each in denials}
    denied = Counter(name for name, call in calls if call is not None)
    return any(count > denied[name] for name, count in result.tool_calls.count.items())


# These failures have causes outside the session: repeating them proves nothing about it.
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


class PastAttempt(msgspec.Struct, frozen=True):
    """The outcome of an earlier attempt, and its session."""

    session: str
    failure: str | None


def fails_at_each_resume(past: Sequence[PastAttempt]) -> bool:
    """Return whether a session fails in the same way at each resume; the newest comes first.

    That takes two attempts that resumed it, so the third attempt at the earliest.
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


def basis_after(ended: AttemptResult, before: Basis, past: Sequence[PastAttempt]) -> Basis:
    """Return the basis that an attempt leaves; `before` is the basis that it had."""
    result = ended.result
    resumable = ended.resumable
    if not _is_lost(result) and not _has_reached_session(result):
        resumable = before.resumable  # the attempt has not changed the session
    return Basis(
        resumable=resumable and not fails_at_each_resume(past),
        side_effects=before.side_effects or ended.side_effects or has_side_effects(result),
    )


def _has_reached_session(result: RunResult) -> bool:
    return result.provider_session_id is not None and not _at_start(result)


def _at_start(result: RunResult) -> bool:
    return result.failure is not None and result.failure.phase == "start"


def _is_lost(result: RunResult) -> bool:
    return result.failure is not None and result.failure.kind is FailureKind.SESSION_NOT_FOUND


def restarts_without_session(result: RunResult, basis: Basis) -> bool:
    """Return whether an attempt only found that the session to resume is gone."""
    return _is_lost(result) and not basis.side_effects and not basis.resumable


def has_exited(result: RunResult) -> bool:
    """Return whether a command ran to its own end, so that its outcome is known."""
    failure = result.failure
    return (
        result.status is RunStatus.FAILED
        and failure is not None
        and failure.kind is FailureKind.PROCESS_EXITED
        and failure.exit_code is not None
    )


class AttemptDecision(msgspec.Struct, frozen=True, kw_only=True):
    """The decision about an attempt's end."""

    result: RunResult
    """Its result, which names the required decision, if any."""
    basis: Basis
    """The basis of an automatic further attempt."""
    rerun_basis: Basis
    """The basis of the next attempt if the user runs the batch again."""


def decide_attempt(
    ended: AttemptResult,
    before: Basis,
    past: Sequence[PastAttempt],
    *,
    resumes: bool,
    is_command: bool,
) -> AttemptDecision:
    """Decide on the end of an attempt that began with `before`.

    `resumes`: its provider can resume sessions. `is_command`: the prompt is a command; one that
    ended by itself runs again when the user runs the batch again.
    """
    result = ended.result
    basis = basis_after(ended, before, past)
    if is_command and _at_start(result):
        basis = before  # the call is recorded, but nothing ran
    rerun_basis = Basis() if is_command and has_exited(result) else basis
    reported = with_required_decision(
        result, basis, why_not=why_not_resumed(result, past, resumes=resumes)
    )
    return AttemptDecision(result=reported, basis=basis, rerun_basis=rerun_basis)


def with_required_decision(result: R, basis: Basis, *, why_not: str) -> R:
    """Return a result that names the needed decision; `why_not`: why the session cannot resume."""
    if basis.resumable:
        how = "--retry-from session resumes its session, --retry-from fresh starts it over"
    else:
        how = f"{why_not}; --retry-from fresh starts it over and may repeat them"
    if result.failure is None:
        return replace(result, detail=_joined(result.detail or "", how))
    failure = replace(result.failure, message=_joined(result.failure.message, how))
    return replace(result, failure=failure)


_MADE: Final = "the job has made tool calls, and "


def _joined(said: str, how: str) -> str:
    said = said.partition(_MADE)[0].removesuffix("; ")  # remove the note of an earlier attempt
    return f"{said}; {_MADE}{how}" if said else f"{_MADE}{how}"


def why_not_resumed(result: RunResult, past: Sequence[PastAttempt], *, resumes: bool) -> str:
    """Return the reason why a session is not resumed after a run."""
    if not resumes:
        return f"{result.provider} cannot resume a session"
    if fails_at_each_resume(past):
        kind = past[0].failure
        return f"its session seems unusable ({kind} twice in a row after it was resumed)"
    if _is_lost(result):
        return "its provider session is gone"
    if result.provider_session_id is None:
        return "its provider session is unknown"
    return "its provider session cannot be resumed"
