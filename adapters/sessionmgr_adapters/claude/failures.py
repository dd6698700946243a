"""Failures of a turn of Claude Code: the only module that determines failure kinds.

Pure. A result with the subtype `success` may be a failure: `is_error` decides. The details of the
error are spread over the result, the message before it and the rate limit that was hit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessionmgr.model import Failure, FailureKind, format_optional_timestamp
from sessionmgr_adapters.claude.frames import AssistantFrame, ClaudeMessage

if TYPE_CHECKING:
    from sessionmgr_adapters.claude.frames import RateLimitInfo, ResultFrame, SystemFrame

_SIGNS: Final[dict[FailureKind, tuple[str | int, ...]]] = {
    FailureKind.BUDGET_EXCEEDED: ("error_max_turns", "error_max_budget_usd", "budget_exhausted"),
    FailureKind.STRUCTURED_INVALID: ("error_max_structured_output_retries",),
    FailureKind.CONTEXT_EXCEEDED: (
        *("prompt_too_long", "image_error", "blocking_limit", "rapid_refill_breaker"),
    ),
    FailureKind.AUTH_FAILED: (
        *(401, 403, "authentication_failed", "oauth_org_not_allowed"),
        *("verification_required", "cloud_credential_error"),
    ),
    FailureKind.BILLING: (402, "account_on_hold", "billing_error"),
    FailureKind.RATE_LIMITED: (429, "rate_limit"),
    FailureKind.OVERLOADED: (529, "overloaded"),
    FailureKind.MODEL_NOT_FOUND: ("model_not_found",),
}
"""The statuses, subtypes, errors and reasons of each kind."""
_KIND_OF: Final[dict[str | int | None, FailureKind]] = {
    sign: kind for kind, signs in _SIGNS.items() for sign in signs
}
_NO_ERROR: Final = AssistantFrame(message=ClaudeMessage(content=""))
_TRANSIENT: Final = {FailureKind.RATE_LIMITED, FailureKind.OVERLOADED}
_USAGE_LIMIT: Final = "usage_limit_reached"
_UNREACHABLE: Final = {"connection_failed", "server_error", "unknown"}
"""Errors without a status: no answer has come, or half of one."""
# The conversation itself is too large or gone, so resuming it would fail again.
_UNRESUMABLE: Final = {FailureKind.CONTEXT_EXCEEDED, FailureKind.SESSION_NOT_FOUND}
_SERVERS_FAULT: Final = 500
_DIAGNOSTIC: Final = "[ede_diagnostic]"
"""Prefix of internal diagnostics of Claude Code, which do not help the user."""

# What a process that failed to start writes to stderr.
_STDERR_PATTERNS: Final = (
    ("No conversation found", FailureKind.SESSION_NOT_FOUND),
    ("already in use", FailureKind.SESSION_BUSY),
    ("root/sudo privileges", FailureKind.PERMISSION_REFUSED),
    ("unknown option", FailureKind.CONFIG_INVALID),
    ("Invalid JSON", FailureKind.CONFIG_INVALID),
    ("is not a valid JSON Schema", FailureKind.CONFIG_INVALID),
    ("Invalid session ID", FailureKind.CONFIG_INVALID),
    ("Invalid MCP config", FailureKind.CONFIG_INVALID),
)


def failure_of(
    result: ResultFrame, error: AssistantFrame | None = None, limit: RateLimitInfo | None = None
) -> Failure | None:
    """Return the failure of the turn that a result ends; None if it succeeded."""
    if not result.is_error and not result.subtype.startswith("error"):
        return None
    error = error or _NO_ERROR
    kind, code = _failure_kind(result, error)
    resets_at = _resets_at(error, limit) if kind is FailureKind.RATE_LIMITED else None
    is_spent = _USAGE_LIMIT in {result.api_error, error.api_error}
    if kind is FailureKind.RATE_LIMITED and is_spent and resets_at is None:
        kind = FailureKind.QUOTA_EXHAUSTED
    status = result.api_error_status or error.api_error_status or 0
    return Failure(
        kind=kind,
        message=_failure_message(result),
        retryable=kind in _TRANSIENT
        or status >= _SERVERS_FAULT
        or (not status and kind is FailureKind.PROVIDER_ERROR and code in _UNREACHABLE),
        resumable=kind not in _UNRESUMABLE,
        retry_at=format_optional_timestamp(resets_at),
        provider_code=code,
        phase="turn",
    )


def _failure_kind(result: ResultFrame, error: AssistantFrame) -> tuple[FailureKind, str | None]:
    if result.subtype != "success":
        known = _KIND_OF.get(result.subtype) or stderr_failure_kind(_failure_message(result))
        if known is not None:
            return known, result.subtype
        return FailureKind.PROVIDER_ERROR, result.terminal_reason or result.subtype
    if result.stop_reason == "refusal":
        return FailureKind.REFUSED, "refusal"
    code = result.api_error or result.api_error_type or error.api_error_type or error.error
    status = result.api_error_status or error.api_error_status
    signs = (result.terminal_reason, error.error, status)
    kind = next((_KIND_OF[each] for each in signs if each in _KIND_OF), None)
    return kind or FailureKind.PROVIDER_ERROR, code or result.terminal_reason


def _failure_message(result: ResultFrame) -> str:
    text = result.errors[0] if result.errors else result.result
    if text and not text.startswith(_DIAGNOSTIC):
        return text
    return f"the turn ended with {result.terminal_reason or result.subtype}"


def _resets_at(error: AssistantFrame, limit: RateLimitInfo | None) -> float | None:
    match error.api_error_params:
        case {"rate_limit_info": {"resetsAt": int() | float() as at}}:
            return at
        case _:
            return limit.resets_at if limit is not None and limit.status == "rejected" else None


def retry_failure(retry: SystemFrame) -> Failure:
    """Return the failure that caused a retry."""
    kind = _KIND_OF.get(retry.error_status) or _KIND_OF.get(retry.error)
    shown = "no answer" if retry.error_status is None else f"status {retry.error_status}"
    return Failure(
        kind=kind or FailureKind.PROVIDER_ERROR,
        message=f"the API gave {shown} ({retry.error or 'unknown'})",
        retryable=True,
        resumable=True,
        provider_code=retry.error,
        phase="turn",
    )


def stderr_failure_kind(stderr: str) -> FailureKind | None:
    """Return the failure kind for the last lines of stderr; None if they match no known pattern."""
    return next((kind for words, kind in _STDERR_PATTERNS if words in stderr), None)
