"""Denied requests in a batch, and their effect on a job's outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from sessionmgr.model import Failure, FailureKind, RunStatus

if TYPE_CHECKING:
    from sessionmgr.batch.host import AttemptResult
    from sessionmgr.model import PermissionDenial, RunResult

OnDenied: TypeAlias = Literal["warn", "fail"]
ON_DENIED: Final[tuple[OnDenied, ...]] = ("warn", "fail")
"""How a completed job with denials counts: shown with a warning, or failed."""
DENIALS_LIMIT: Final = 100
"""Maximum number of denials in a summary."""
NO_RULES: Final = "no approval rules (--approve FILE): every request of an agent will be denied"


class JobDenial(msgspec.Struct, frozen=True, kw_only=True):
    """One denied request of a job's agent."""

    job: str
    """The job's id."""
    tool_name: str
    """Name of the tool."""
    summary: str | None = None
    """The command, the path, or the most informative part of the tool's input."""
    reason: str | None = None
    """Reason for the denial."""
    by: str | None = None
    """Source of the decision: `caller`, `rules`, `request` (a command), `deadline`, …."""


def denials_of(result: RunResult) -> tuple[PermissionDenial, ...]:
    """Return the denials, except those made by the job's own permission mode."""
    return tuple(each for each in result.permission_denials if each.by != "mode")


def apply_denial_policy(ended: AttemptResult, on_denied: OnDenied) -> AttemptResult:
    """Return the outcome that counts: with `fail`, a job with denials has failed."""
    result, denied = ended.result, denials_of(ended.result)
    if on_denied == "warn" or not denied or result.status is not RunStatus.COMPLETED:
        return ended
    first = denied[0]
    what = f"{first.tool_name}: {first.summary}" if first.summary else first.tool_name
    more = f" and {len(denied) - 1} more" if len(denied) > 1 else ""
    why = f" ({first.reason})" if first.reason else ""
    failure = Failure(
        kind=FailureKind.PERMISSION_REFUSED,
        message=f"denied: {what}{why}{more}; allow it with --approve, or use --on-denied warn",
    )
    return replace(ended, result=replace(result, status=RunStatus.FAILED, failure=failure))
