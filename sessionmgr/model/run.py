"""The result of a run, and the record of a run while it is open."""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from sessionmgr.model.capability import Negotiation
from sessionmgr.model.failure import Failure
from sessionmgr.model.json_codec import Json, UnreadableJson, parse_json
from sessionmgr.model.outcome import EndReason
from sessionmgr.model.permission import Permission, PermissionDenial
from sessionmgr.model.status import RunStatus
from sessionmgr.model.usage import NOTHING_USED, UNKNOWN_COST, Cost, Usage
from sessionmgr.model.value import Value, without_unknown


class ToolCalls(Value, frozen=True, kw_only=True, gc=False):
    """Numbers of tool calls: by the tool's name, failed and denied."""

    count: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    """Number of calls by name of the tool."""
    failed: int = 0
    """Number of calls that failed."""
    denied: int = 0
    """Number of calls that were denied."""


class Image(Value, frozen=True, kw_only=True, gc=False):
    """An image that the agent made; the store keeps its bytes as a blob named by their sha256."""

    media_type: str
    """Media type, such as `image/png`."""
    blob: str
    """The sha256 of the image."""
    bytes: int
    """Size of the image."""


class RunResult(Value, frozen=True, kw_only=True):
    """The result of a run: the fold of its events `first_seq` to `last_seq`, and nothing else."""

    id: str
    """The run (`run_…`)."""
    session_id: str
    """The session (`ses_…`)."""
    provider: str
    """The provider."""
    status: RunStatus = RunStatus.PENDING
    """How the run ended, or its present state."""
    reason: EndReason | None = None
    """Why the run ended, if the provider did not end it."""
    detail: str | None = None
    """Further explanation of `reason`."""
    text: str = ""
    """The agent's last message, or the part of it that arrived."""
    structured: Json = None
    """The structured output, validated if jsonschema-rs is installed."""
    stop_reason: str | None = None
    """The provider's own reason for the end."""
    tool_calls: ToolCalls = ToolCalls()
    """Number of tool calls."""
    usage: Usage = NOTHING_USED
    """Token usage."""
    cost: Cost = UNKNOWN_COST
    """Cost in US dollars."""
    failure: Failure | None = None
    """The failure, unless the run completed."""
    provider_session_id: str | None = None
    """The provider's own id of the session."""
    negotiation: Negotiation | None = None
    """The result of the run's `require` and `prefer`."""
    permission: Permission | None = None
    """The permission mode in force."""
    permission_denials: tuple[PermissionDenial, ...] = ()
    """Denied requests of the agent."""
    images: tuple[Image, ...] = ()
    """Images that the agent made."""
    first_seq: int = 0
    """Number of the run's first event."""
    last_seq: int = 0
    """Number of the run's last event."""
    started_at: str | None = None
    """Time of the start (RFC 3339, UTC)."""
    ended_at: str | None = None
    """Time of the end (RFC 3339, UTC)."""
    duration: float | None = None
    """Seconds from start to end."""
    turns: int = 0
    """Number of turns."""
    exit_code: int | None = None
    """Exit code of the run's own process, if it has one and exited."""
    resumed_from: str | None = None
    """The run whose provider session this run resumed."""
    metadata: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])
    """The caller's metadata."""


class Run(RunResult, frozen=True, kw_only=True):
    """The record of a run: its result so far and its open items. A new one is pending."""

    model: str | None = None
    cwd: str | None = None
    credential: str = "unknown"
    cli_version: str | None = None
    open_tools: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """Tool calls without a result: id and name."""
    interrupted_tools: tuple[str, ...] = ()
    """Tools whose calls were running when the run was stopped, whatever the status of the run."""
    open_approvals: tuple[str, ...] = ()
    open_tasks: int = 0
    open_messages: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """Messages that are queued or whose delivery is unknown: id and state."""
    partial: tuple[str, ...] = ()
    """The streamed text of an incomplete message, in pieces."""
    partial_id: str | None = None
    signal: int | None = None
    forced: bool = False
    killed_by_os: bool = False
    left_running: tuple[str, ...] = ()

    def result(self) -> RunResult:
        """Return the result so far."""
        return RunResult(**{name: getattr(self, name) for name in _RESULT})


R = TypeVar("R", bound=RunResult)
_RESULT: Final = RunResult.__struct_fields__


def decode_result(line: bytes) -> RunResult:
    """Decode a result from JSON; unknown fields are ignored.

    Raises:
        msgspec.ValidationError: The JSON is not a result.
    """
    return _decode(line, RunResult)


def decode_run(body: bytes) -> Run:
    """Decode a run's record from JSON.

    Raises:
        msgspec.ValidationError: The JSON is not a record of a run.
    """
    return _decode(body, Run)


def _decode(line: bytes, of: type[R]) -> R:
    found = parse_json(line)
    if isinstance(found, UnreadableJson):
        raise msgspec.ValidationError(found.why)
    return msgspec.convert(without_unknown(found, of), of)
