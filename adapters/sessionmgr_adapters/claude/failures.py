"""What it means that a turn of Claude Code went wrong: the one place where kinds are given.

Pure. A result that says `success` may be none: what counts is `is_error`, and what is known of the
error is spread over the result, the message before it and the limit that was hit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessionmgr.model import Failure, FailureKind, moment

if TYPE_CHECKING:
    from sessionmgr_adapters.claude.frames import Assistant, RateLimitInfo, Result, System

_BY_SUBTYPE: Final = {
    "error_max_turns": FailureKind.BUDGET_EXCEEDED,
    "error_max_budget_usd": FailureKind.BUDGET_EXCEEDED,
    "error_max_structured_output_retries": FailureKind.STRUCTURED_INVALID,
}
_BY_TERMINAL_REASON: Final = {
    "prompt_too_long": FailureKind.CONTEXT_EXCEEDED,
    "image_error": FailureKind.CONTEXT_EXCEEDED,
    "blocking_limit": FailureKind.CONTEXT_EXCEEDED,
    "rapid_refill_breaker": FailureKind.CONTEXT_EXCEEDED,
    "budget_exhausted": FailureKind.BUDGET_EXCEEDED,
}
_BY_ERROR: Final = {
    "authentication_failed": FailureKind.AUTH_FAILED,
    "oauth_org_not_allowed": FailureKind.AUTH_FAILED,
    "verification_required": FailureKind.AUTH_FAILED,
    "cloud_credential_error": FailureKind.AUTH_FAILED,
    "account_on_hold": FailureKind.BILLING,
    "billing_error": FailureKind.BILLING,
    "rate_limit": FailureKind.RATE_LIMITED,
    "overloaded": FailureKind.OVERLOADED,
    "model_not_found": FailureKind.MODEL_NOT_FOUND,
}
_BY_STATUS: Final = {
    401: FailureKind.AUTH_FAILED,
    403: FailureKind.AUTH_FAILED,
    402: FailureKind.BILLING,
    429: FailureKind.RATE_LIMITED,
    529: FailureKind.OVERLOADED,
}
_PASSING: Final = {FailureKind.RATE_LIMITED, FailureKind.OVERLOADED}
_SPENT: Final = "usage_limit_reached"
_UNREACHABLE: Final = {"connection_failed", "server_error", "unknown"}
"""What an error without a status is called: no answer has come, or half of one."""
# The conversation itself is what is too large: to go on with it would fail again.
_FULL: Final = {FailureKind.CONTEXT_EXCEEDED}
_SERVERS_FAULT: Final = 500
_DIAGNOSTIC: Final = "[ede_diagnostic]"
"""What begins so is about Claude Code, and says nobody anything."""

# What a start says on stderr that came to nothing.
_COMPLAINTS: Final = (
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
    result: Result, error: Assistant | None = None, limit: RateLimitInfo | None = None
) -> Failure | None:
    """Return what went wrong in the turn that a result ends; None if nothing did."""
    if not result.is_error and not result.subtype.startswith("error"):
        return None
    kind, code = _kind(result, error)
    resets_at = _resets_at(error, limit) if kind is FailureKind.RATE_LIMITED else None
    is_spent = _SPENT in {result.api_error, error.api_error if error else None}
    if kind is FailureKind.RATE_LIMITED and is_spent and resets_at is None:
        kind = FailureKind.QUOTA_EXHAUSTED
    status = result.api_error_status or (error.api_error_status if error else None) or 0
    return Failure(
        kind=kind,
        message=_message(result),
        retryable=kind in _PASSING
        or status >= _SERVERS_FAULT
        or (not status and kind is FailureKind.PROVIDER_ERROR and code in _UNREACHABLE),
        resumable=kind not in _FULL and kind is not FailureKind.SESSION_NOT_FOUND,
        retry_at=moment.told(resets_at),
        provider_code=code,
        phase="turn",
    )


def _kind(result: Result, error: Assistant | None) -> tuple[FailureKind, str | None]:
    if result.subtype in _BY_SUBTYPE:
        return _BY_SUBTYPE[result.subtype], result.subtype
    if result.subtype != "success":
        text = _message(result)
        for complaint, kind in _COMPLAINTS:
            if complaint in text:
                return kind, result.subtype
        return FailureKind.PROVIDER_ERROR, result.terminal_reason or result.subtype
    said = error.error if error else None
    status = result.api_error_status or (error.api_error_status if error else None)
    kind_of_api = result.api_error_type or (error.api_error_type if error else None)
    code = result.api_error or kind_of_api or said or result.terminal_reason
    if result.stop_reason == "refusal":
        return FailureKind.REFUSED, "refusal"
    for table, key in ((_BY_TERMINAL_REASON, result.terminal_reason), (_BY_ERROR, said)):
        if key in table:
            return table[key], code
    return _BY_STATUS.get(status or 0, FailureKind.PROVIDER_ERROR), code


def _message(result: Result) -> str:
    told = result.errors[0] if result.errors else result.result
    if told and not told.startswith(_DIAGNOSTIC):
        return told
    return f"the turn ended with {result.terminal_reason or result.subtype}"


def _resets_at(error: Assistant | None, limit: RateLimitInfo | None) -> float | None:
    match error.api_error_params if error else None:
        case {"rate_limit_info": {"resetsAt": int() | float() as at}}:
            return at
        case _:
            return limit.resets_at if limit is not None and limit.status == "rejected" else None


def retry_failure(retry: System) -> Failure:
    """Return what a retry is made for."""
    kind = _BY_STATUS.get(retry.error_status or 0) or _BY_ERROR.get(retry.error or "")
    shown = "no answer" if retry.error_status is None else f"status {retry.error_status}"
    return Failure(
        kind=kind or FailureKind.PROVIDER_ERROR,
        message=f"the API gave {shown} ({retry.error or 'unknown'})",
        retryable=True,
        resumable=True,
        provider_code=retry.error,
        phase="turn",
    )


def complaint_kind(stderr: str) -> FailureKind | None:
    """Return what a child's last words say it died of; None if nothing that is known."""
    return next((kind for words, kind in _COMPLAINTS if words in stderr), None)
