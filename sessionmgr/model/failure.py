"""Failures of a run, as a closed set of kinds."""

from __future__ import annotations

from enum import StrEnum

from sessionmgr.model.value import Value


class FailureKind(StrEnum):
    """The kind of a failure: its origin and, with it, the possible remedy."""

    CONFIG_INVALID = "config_invalid"
    """A setting, an option or an argument is invalid."""
    CLI_NOT_FOUND = "cli_not_found"
    """The agent's program is not installed."""
    CAPABILITY_MISSING = "capability_missing"
    """The provider lacks a required capability."""
    PERMISSION_REFUSED = "permission_refused"
    """The permission mode or a request was refused."""
    START_FAILED = "start_failed"
    """The agent did not start."""
    AUTH_FAILED = "auth_failed"
    """The agent is not logged in, or its key is invalid."""
    BILLING = "billing"
    """The provider refuses for a reason of payment."""
    QUOTA_EXHAUSTED = "quota_exhausted"
    """The quota or subscription limit is used up."""
    RATE_LIMITED = "rate_limited"
    """The provider limits the rate of requests."""
    OVERLOADED = "overloaded"
    """The provider is overloaded."""
    MODEL_NOT_FOUND = "model_not_found"
    """The model does not exist or is not available."""
    CONTEXT_EXCEEDED = "context_exceeded"
    """The context exceeds the size that the model accepts."""
    REFUSED = "refused"
    """The model refused the request."""
    PROTOCOL_ERROR = "protocol_error"
    """The agent sent something that contradicts its protocol."""
    PROCESS_EXITED = "process_exited"
    """The agent's process ended before the run did."""
    KILLED_BY_OS = "killed_by_os"
    """The operating system killed the agent's process; mostly the OOM killer."""
    STALLED = "stalled"
    """The agent was silent for longer than a timeout."""
    TIMED_OUT = "timed_out"
    """The run exceeded its deadline."""
    BUDGET_EXCEEDED = "budget_exceeded"
    """The run exceeded its budget."""
    APPROVAL_UNANSWERED = "approval_unanswered"
    """A request of the agent was not answered in time."""
    STRUCTURED_INVALID = "structured_invalid"
    """The structured output is missing or does not match its schema."""
    SESSION_NOT_FOUND = "session_not_found"
    """The provider does not have the session to resume."""
    SESSION_BUSY = "session_busy"
    """Another program uses the session."""
    ADAPTER_CRASHED = "adapter_crashed"
    """The adapter raised an exception."""
    MANAGER_CRASHED = "manager_crashed"
    """The process of the session manager died."""
    STORE_FAILED = "store_failed"
    """The store could not record the run."""
    PROVIDER_ERROR = "provider_error"
    """Any other error that the provider reports."""


class Failure(Value, frozen=True, kw_only=True, gc=False):
    """One failure of a run. `phase` is the part of the run: start, turn or close."""

    kind: FailureKind
    """The kind of failure."""
    message: str
    """One line for a reader."""
    retryable: bool = False
    """Whether another attempt may succeed."""
    resumable: bool = False
    """Whether the provider's session can be resumed."""
    retry_at: str | None = None
    """Earliest time of another attempt (RFC 3339), if the provider names one."""
    provider_code: str | None = None
    """The provider's own code."""
    exit_code: int | None = None
    """Exit code of the process, if it exited."""
    stderr_tail: str | None = None
    """The end of the process's stderr."""
    phase: str | None = None
    """Part of the run in which it failed: `start`, `turn` or `close`."""
