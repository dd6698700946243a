"""Events of the beginning and the end of sessions and runs."""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec
from msgspec import UNSET, UnsetType

from sessionmgr.model.capability import Negotiation
from sessionmgr.model.event.envelope import Event
from sessionmgr.model.failure import Failure
from sessionmgr.model.json_codec import Json
from sessionmgr.model.outcome import EndReason
from sessionmgr.model.permission import Permission
from sessionmgr.model.usage import Cost, Usage


class SessionCreated(Event, frozen=True, kw_only=True):
    """A session was created."""

    type: ClassVar[Literal["session_created"]]


class SessionClosed(Event, frozen=True, kw_only=True):
    """A session takes no more runs."""

    type: ClassVar[Literal["session_closed"]]


class SessionReopened(Event, frozen=True, kw_only=True):
    """A closed session was reopened: its caller requested another run."""

    type: ClassVar[Literal["session_reopened"]]


class RunStarted(Event, frozen=True, kw_only=True):
    """The provider has started a run; the manager adds the fields that only it knows."""

    type: ClassVar[Literal["run_started"]]
    provider_session_id: str | None = None
    """The provider's own id of the session."""
    model: str | None = None
    """The model in use, as the provider names it."""
    cwd: str | None = None
    """The working directory."""
    permission: Permission | None = None
    """The permission mode in force."""
    negotiation: Negotiation | None = None
    """The result of the run's `require` and `prefer`."""
    credential: Literal["api_key", "subscription", "unknown"] = "unknown"
    """What the provider charges for the run: an API key or a subscription."""
    cli_version: str | None = None
    """Version of the provider's program."""
    resumed_from: str | None = None
    """The run whose provider session this run resumes."""
    metadata: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])
    """The caller's metadata."""
    asked: dict[str, Json] | UnsetType = UNSET
    """The stored request of the run besides its prompt: tools, options, limits.

    A follow-up of the run gets the same. Older records do not have it.
    """


class ProviderSessionUpdated(Event, frozen=True, kw_only=True):
    """The provider has changed the id of its session."""

    type: ClassVar[Literal["provider_session_updated"]]
    provider_session_id: str
    """The new id."""


class TurnCompleted(Event, frozen=True, kw_only=True):
    """The provider has finished a turn, which does not yet end the run."""

    type: ClassVar[Literal["turn_completed"]]
    stop_reason: str | None = None
    """The provider's reason for the end of the turn."""
    open_tasks: int = 0
    """Number of background tasks that still run."""


class ProcessExited(Event, frozen=True, kw_only=True):
    """The run's own process has exited. This may follow the terminal event."""

    type: ClassVar[Literal["process_exited"]]
    exit_code: int | None = None
    """Exit code of the process, if it exited."""
    signal: int | None = None
    """Signal that ended the process, if one did."""
    forced: bool = False
    """Whether sessionmgr sent SIGTERM or SIGKILL to the running process."""
    killed_by_os: bool = False
    """Whether a signal from another source ended the process; mostly the OOM killer."""
    emptied: bool | None = None
    """Whether the kernel confirmed that its process tree is empty."""
    left_running: tuple[str, ...] = ()
    """Processes of its tree that are out of sessionmgr's reach."""


class RunEnded(Event, frozen=True, kw_only=True):
    """The terminal event of a run, in one of six kinds."""

    stop_reason: str | None = None
    """The provider's reason for the end."""
    failure: Failure | None = None
    """The failure, unless the run completed."""
    reason: EndReason | None = None
    """Why the run ended, if the provider did not end it."""
    detail: str | None = None
    """Further explanation of `reason`."""
    usage: Usage | None = None
    """Total token usage, in place of the sum of `token_usage_updated`."""
    cost: Cost | None = None
    """Total cost, in place of the sum of `token_usage_updated`."""
    structured: Json = None
    """The structured output."""
    interrupted_tools: tuple[str, ...] = ()
    """Names of tools whose calls were running when the run was stopped."""
    ended_at: str | None = None
    """Time of the end, if known and earlier than its record."""


class RunCompleted(RunEnded, frozen=True, kw_only=True):
    """The provider reports success."""

    type: ClassVar[Literal["run_completed"]]


class RunFailed(RunEnded, frozen=True, kw_only=True):
    """The run failed; `failure` has the kind and the message."""

    type: ClassVar[Literal["run_failed"]]


class RunCancelled(RunEnded, frozen=True, kw_only=True):
    """The run was stopped; `reason` has the cause."""

    type: ClassVar[Literal["run_cancelled"]]


class RunTimedOut(RunEnded, frozen=True, kw_only=True):
    """A deadline or a timeout ended the run."""

    type: ClassVar[Literal["run_timed_out"]]


class RunRateLimited(RunEnded, frozen=True, kw_only=True):
    """A rate limit of the provider ended the run."""

    type: ClassVar[Literal["run_rate_limited"]]


class RunPaused(RunEnded, frozen=True, kw_only=True):
    """The run was interrupted so that it can be resumed."""

    type: ClassVar[Literal["run_paused"]]
