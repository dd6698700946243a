"""What may go wrong with a run, as a closed set of kinds."""

from __future__ import annotations

from enum import StrEnum

from sessionmgr.model.value import Value


class FailureKind(StrEnum):
    """Whose fault it is, and what can be done about it, in one word."""

    CONFIG_INVALID = "config_invalid"
    CLI_NOT_FOUND = "cli_not_found"
    CAPABILITY_MISSING = "capability_missing"
    PERMISSION_REFUSED = "permission_refused"
    START_FAILED = "start_failed"
    AUTH_FAILED = "auth_failed"
    BILLING = "billing"
    QUOTA_EXHAUSTED = "quota_exhausted"
    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    MODEL_NOT_FOUND = "model_not_found"
    CONTEXT_EXCEEDED = "context_exceeded"
    REFUSED = "refused"
    PROTOCOL_ERROR = "protocol_error"
    PROCESS_EXITED = "process_exited"
    KILLED_BY_OS = "killed_by_os"
    STALLED = "stalled"
    TIMED_OUT = "timed_out"
    BUDGET_EXCEEDED = "budget_exceeded"
    APPROVAL_UNANSWERED = "approval_unanswered"
    STRUCTURED_INVALID = "structured_invalid"
    SESSION_NOT_FOUND = "session_not_found"
    SESSION_BUSY = "session_busy"
    ADAPTER_CRASHED = "adapter_crashed"
    MANAGER_CRASHED = "manager_crashed"
    STORE_FAILED = "store_failed"
    PROVIDER_ERROR = "provider_error"


class Failure(Value, frozen=True, kw_only=True, gc=False):
    """One thing that went wrong. `phase` says in which part of the run: start, turn, close."""

    kind: FailureKind
    message: str
    retryable: bool = False
    resumable: bool = False
    retry_at: str | None = None
    provider_code: str | None = None
    exit_code: int | None = None
    stderr_tail: str | None = None
    phase: str | None = None
