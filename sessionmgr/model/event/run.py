"""How sessions and runs begin and end."""

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
    """A session has come to be."""

    type: ClassVar[Literal["session_created"]]


class SessionClosed(Event, frozen=True, kw_only=True):
    """A session takes no more runs."""

    type: ClassVar[Literal["session_closed"]]


class SessionReopened(Event, frozen=True, kw_only=True):
    """A closed session was reopened: its caller requested another run."""

    type: ClassVar[Literal["session_reopened"]]


class RunStarted(Event, frozen=True, kw_only=True):
    """The provider has taken up a run; what only the manager knows, it completes."""

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
    """The run's stored wishes beside its prompt: tools, options, limits.

    A follow-up of the run gets the same. Older records do not have it.
    """


class ProviderSessionUpdated(Event, frozen=True, kw_only=True):
    """The provider calls its session by another id from now on."""

    type: ClassVar[Literal["provider_session_updated"]]
    provider_session_id: str
    """The new id."""


class TurnCompleted(Event, frozen=True, kw_only=True):
    """The provider has finished a turn, which is not yet the end of the run."""

    type: ClassVar[Literal["turn_completed"]]
    stop_reason: str | None = None
    """The provider's reason for the end of the turn."""
    open_tasks: int = 0
    """Number of background tasks that still run."""


class ProcessExited(Event, frozen=True, kw_only=True):
    """The run's own process is gone. This may follow the terminal event."""

    type: ClassVar[Literal["process_exited"]]
    exit_code: int | None = None
    """Exit code of the process, if it exited."""
    signal: int | None = None
    """Signal that ended the process, if one did."""
    forced: bool = False
    """Whether sessionmgr sent SIGTERM or SIGKILL to a living process."""
    killed_by_os: bool = False
    """Whether a signal from elsewhere ended the process; mostly the OOM killer."""
    emptied: bool | None = None
    """The kernel has confirmed that nothing of its tree is left."""
    left_running: tuple[str, ...] = ()
    """What of its tree is out of our reach."""


class RunEnded(Event, frozen=True, kw_only=True):
    """A run's one terminal event, in one of six kinds."""

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
    """When the run ended, if known and earlier than the record of its end."""


class RunCompleted(RunEnded, frozen=True, kw_only=True):
    """The provider says that it is done, and well."""

    type: ClassVar[Literal["run_completed"]]


class RunFailed(RunEnded, frozen=True, kw_only=True):
    """It went wrong; `failure` says how."""

    type: ClassVar[Literal["run_failed"]]


class RunCancelled(RunEnded, frozen=True, kw_only=True):
    """Somebody stopped it; `reason` says who."""

    type: ClassVar[Literal["run_cancelled"]]


class RunTimedOut(RunEnded, frozen=True, kw_only=True):
    """A clock ran out."""

    type: ClassVar[Literal["run_timed_out"]]


class RunRateLimited(RunEnded, frozen=True, kw_only=True):
    """The provider wants us to wait, and nobody did."""

    type: ClassVar[Literal["run_rate_limited"]]


class RunPaused(RunEnded, frozen=True, kw_only=True):
    """Interrupted so that it can be resumed."""

    type: ClassVar[Literal["run_paused"]]
