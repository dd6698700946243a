"""Messages of Claude Code on its stdout, and our requests to it: one JSON object per line.

The frames are open: unknown fields are ignored; an unknown type, subtype or block is decoded to an
`UntypedFrame`, and reported unchanged. A result must not be lost, because without it a turn would
never end: a result with a malformed field is decoded without that field.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Literal, TypeAlias

import msgspec

from sessionmgr.model import Json
from sessionmgr.wire import Line, NoFrame, UntypedFrame, decode_frames

Maybe: TypeAlias = str | None


class TaggedFrame(msgspec.Struct, frozen=True, tag_field="type"):
    """Base class of a frame or a block; its field `type` names its class."""


class TextBlock(TaggedFrame, frozen=True, tag="text"):
    """Text of a message."""

    text: str = ""


class ThinkingBlock(TaggedFrame, frozen=True, tag="thinking"):
    """Reasoning that the model reveals."""

    thinking: str = ""


class RedactedBlock(TaggedFrame, frozen=True, tag="redacted_thinking"):
    """Reasoning that the model does not reveal."""


class ToolUse(TaggedFrame, frozen=True, tag="tool_use"):
    """Call of a tool by the model."""

    id: str
    name: str
    input: Json = None


class ServerToolUse(ToolUse, frozen=True, tag="server_tool_use"):
    """Call of a tool that runs on the model's servers."""


class ToolResult(TaggedFrame, frozen=True, tag="tool_result"):
    """Result of a tool call."""

    tool_use_id: str
    content: Json = None
    is_error: bool | None = None


class ServerToolResult(ToolResult, frozen=True, tag="web_search_tool_result"):
    """Result of a tool that runs on the model's servers."""


class ImageBlock(TaggedFrame, frozen=True, tag="image"):
    """Image, which is not shown."""


class DocumentBlock(TaggedFrame, frozen=True, tag="document"):
    """Document, which is not shown."""


Block: TypeAlias = (
    TextBlock | ThinkingBlock | RedactedBlock | ToolUse | ServerToolUse | ToolResult
    | ServerToolResult | ImageBlock | DocumentBlock
)  # fmt: skip


class ClaudeTokenCounts(msgspec.Struct, frozen=True):
    """Tokens used by one call of the model, or by the calls of a turn."""

    input_tokens: float | None = None
    output_tokens: float | None = None
    cache_creation_input_tokens: float | None = None
    cache_read_input_tokens: float | None = None


class ClaudeMessage(msgspec.Struct, frozen=True, kw_only=True):
    """Message of the model's API."""

    content: str | list[Block]
    id: str = ""
    model: str = ""
    usage: ClaudeTokenCounts | None = None


# --- frames -------------------------------------------------------------------------------------


class AssistantFrame(TaggedFrame, frozen=True, kw_only=True, tag="assistant"):
    """Complete block of a message; or an error of the API, reported as a message."""

    message: ClaudeMessage
    parent_tool_use_id: Maybe = None
    error: Maybe = None
    api_error_status: int | None = None
    api_error_type: Maybe = None
    api_error: Maybe = None
    api_error_params: Json = None


class UserFrame(TaggedFrame, frozen=True, kw_only=True, tag="user"):
    """Message to the model: a tool result, a message of Claude Code itself, or ours repeated."""

    message: ClaudeMessage
    uuid: str = ""
    parent_tool_use_id: Maybe = None
    is_replay: bool = msgspec.field(default=False, name="isReplay")


class ClaudeDelta(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Further piece of a block."""

    text: str = ""
    thinking: str = ""


class StreamedMessage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Start of a message."""

    id: str = ""


class StreamedApiEvent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Event of the model's API, unchanged."""

    type: str
    index: int = 0
    message: StreamedMessage | None = None
    delta: ClaudeDelta | None = None


class StreamEventFrame(TaggedFrame, frozen=True, kw_only=True, gc=False, tag="stream_event"):
    """Preview of a part of an `AssistantFrame`."""

    event: StreamedApiEvent
    parent_tool_use_id: Maybe = None
    api_message_id: Maybe = None
    abandoned_blocks: Json = None


class ModelUsage(msgspec.Struct, frozen=True, rename="camel"):
    """Usage of one model."""

    input_tokens: float = 0
    output_tokens: float = 0
    cache_read_input_tokens: float = 0
    cache_creation_input_tokens: float = 0
    thinking_tokens: float = 0
    cost_usd: float = msgspec.field(default=0, name="costUSD")
    context_window: float | None = None


class ToolDenial(msgspec.Struct, frozen=True, kw_only=True):
    """Denied tool call."""

    tool_name: str
    tool_use_id: Maybe = None


class ResultFrame(TaggedFrame, frozen=True, kw_only=True, tag="result"):
    """End of a turn; `success` with `is_error` is a failure."""

    subtype: str = ""
    is_error: bool = False
    result: Maybe = None
    errors: list[str] = msgspec.field(default_factory=list[str])
    session_id: str = ""
    num_turns: float = 0
    stop_reason: Maybe = None
    terminal_reason: Maybe = None
    api_error_status: int | None = None
    api_error_type: Maybe = None
    api_error: Maybe = None
    total_cost_usd: float | None = None
    usage: ClaudeTokenCounts | None = None
    model_usage: dict[str, ModelUsage] = msgspec.field(
        default_factory=dict[str, ModelUsage], name="modelUsage"
    )
    since_last: dict[str, ModelUsage] | None = msgspec.field(
        default=None, name="model_usage_since_last_result"
    )
    permission_denials: list[ToolDenial] = msgspec.field(default_factory=list[ToolDenial])
    structured_output: Json | msgspec.UnsetType = msgspec.UNSET
    user_message_uuids: list[str] | None = None
    origin: Json = None
    """The origin of the turn, if it was not a message of ours."""

    @property
    def ended_by(self) -> str | None:
        """The reason for the end of the turn, if the agent gives one."""
        return self.stop_reason or self.terminal_reason


class BackgroundTask(msgspec.Struct, frozen=True, kw_only=True):
    """Task that runs in the background."""

    task_id: str


class BackgroundTaskPatch(msgspec.Struct, frozen=True, kw_only=True):
    """Change of a background task."""

    status: Maybe = None
    is_backgrounded: bool | None = None


class CompactMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """Details of a compaction of the context."""

    trigger: Maybe = None


SystemKind: TypeAlias = Literal[
    "init", "status", "session_state_changed", "api_retry", "model_fallback",
    "model_refusal_no_fallback", "informational", "notification", "permission_denied",
    "compact_boundary", "task_started", "task_progress", "task_updated", "task_notification",
    "background_tasks_changed", "thinking_tokens", "hook_started", "hook_progress",
    "hook_response", "control_request_progress", "ui_invalidate", "local_command_output",
]  # fmt: skip


class SystemFrame(TaggedFrame, frozen=True, kw_only=True, tag="system"):
    """Report of Claude Code about itself; its fields depend on the subtype."""

    subtype: SystemKind
    session_id: str = ""
    # init
    cwd: str = ""
    model: str = ""
    permission_mode: Maybe = msgspec.field(default=None, name="permissionMode")
    api_key_source: Maybe = msgspec.field(default=None, name="apiKeySource")
    version: Maybe = msgspec.field(default=None, name="claude_code_version")
    capabilities: list[str] = msgspec.field(default_factory=list[str])
    # status, session_state_changed
    status: Maybe = None
    compact_result: Maybe = None
    state: Maybe = None
    # api_retry
    attempt: float = 0
    retry_delay_ms: float = 0
    error_status: int | None = None
    error: Maybe = None
    # model_fallback, banners
    trigger: Maybe = None
    original_model: Maybe = None
    fallback_model: Maybe = None
    # permission_denied
    tool_name: Maybe = None
    tool_use_id: Maybe = None
    message: Json = None
    decision_reason: Maybe = None
    # compact_boundary
    compact_metadata: CompactMetadata | None = None
    # tasks
    task_id: Maybe = None
    is_backgrounded: bool | None = None
    patch: BackgroundTaskPatch | None = None
    tasks: list[BackgroundTask] = msgspec.field(default_factory=list[BackgroundTask])


class MessageLifecycle(TaggedFrame, frozen=True, kw_only=True, tag="command_lifecycle"):
    """State of a message of ours: queued, started, completed, cancelled, discarded."""

    command_uuid: str
    state: str


class RateLimitInfo(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Usage of a subscription's rate limit."""

    status: str = ""
    resets_at: float | None = None
    rate_limit_type: Maybe = None
    utilization: float | None = None


class RateLimitFrame(TaggedFrame, frozen=True, kw_only=True, tag="rate_limit_event"):
    """A rate limit of a subscription is near, or was hit."""

    rate_limit_info: RateLimitInfo


class ConversationReset(TaggedFrame, frozen=True, kw_only=True, tag="conversation_reset"):
    """The session starts again, under another id."""

    new_conversation_id: str


class KeepAliveFrame(TaggedFrame, frozen=True, tag="keep_alive"):
    """Sign of life."""


class HostRequestBody(msgspec.Struct, frozen=True, kw_only=True):
    """Request of Claude Code to its host; its fields depend on the subtype."""

    subtype: str
    # can_use_tool
    tool_name: str = ""
    input: Json = None
    tool_use_id: Maybe = None
    description: Maybe = None
    decision_reason: Maybe = None
    decision_reason_type: Maybe = None
    # hook_callback
    callback_id: str = ""
    # mcp_message
    message: Json = None


class HostRequest(TaggedFrame, frozen=True, kw_only=True, tag="control_request"):
    """Request to the host."""

    request_id: str
    request: HostRequestBody


class HostRequestWithdrawn(TaggedFrame, frozen=True, kw_only=True, tag="control_cancel_request"):
    """A request to the host was withdrawn, and needs no answer."""

    request_id: str


class ControlReplyBody(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to a request of ours."""

    subtype: str
    request_id: str
    response: Json = None
    error: Maybe = None
    error_code: Maybe = None


class ControlReplyFrame(TaggedFrame, frozen=True, kw_only=True, tag="control_response"):
    """Reply to a request of ours, as a frame."""

    response: ControlReplyBody


ClaudeFrame: TypeAlias = (
    AssistantFrame | UserFrame | StreamEventFrame | ResultFrame | SystemFrame
    | MessageLifecycle | RateLimitFrame | ConversationReset
    | KeepAliveFrame | HostRequest | HostRequestWithdrawn | ControlReplyFrame
)  # fmt: skip

DECODER: Final = msgspec.json.Decoder[ClaudeFrame](ClaudeFrame)


def _repair_result(frame: UntypedFrame) -> ClaudeFrame | UntypedFrame:
    """Decode a result field by field, because without it a turn would never end."""
    value = frame.value
    if not isinstance(value, dict) or value.get("type") != "result":
        return frame
    fields: dict[str, Json] = {"type": "result"}
    for name, each in value.items():
        try:
            msgspec.convert({"type": "result", name: each}, ResultFrame)
        except msgspec.ValidationError:
            continue
        fields[name] = each
    return msgspec.convert(fields, ResultFrame)


decode_lines: Final[Callable[[Sequence[Line]], list[ClaudeFrame | NoFrame]]] = partial(
    decode_frames, decoder=DECODER, mend=_repair_result
)
"""Decodes the lines of a read."""
