"""What Claude Code says on its stdout, and what is said to it: one JSON object a line.

The frames are open. A field that we do not know is passed over; a type, subtype or kind of block
that we do not know comes out of the decoder as what it is, and is told as it came. A result is too
precious for that: one with a field of another shape is read without that field.
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
    """A frame or a block: its field `type` names its class."""


class TextBlock(TaggedFrame, frozen=True, tag="text"):
    """Some text."""

    text: str = ""


class ThinkingBlock(TaggedFrame, frozen=True, tag="thinking"):
    """What the model lets us know of its reasoning."""

    thinking: str = ""


class RedactedBlock(TaggedFrame, frozen=True, tag="redacted_thinking"):
    """Reasoning that is for the model's eyes only."""


class ToolUse(TaggedFrame, frozen=True, tag="tool_use"):
    """The model calls a tool."""

    id: str
    name: str
    input: Json = None


class ServerToolUse(ToolUse, frozen=True, tag="server_tool_use"):
    """The model has called a tool that runs where the model does."""


class ToolResult(TaggedFrame, frozen=True, tag="tool_result"):
    """What came of a tool call."""

    tool_use_id: str
    content: Json = None
    is_error: bool | None = None


class ServerToolResult(ToolResult, frozen=True, tag="web_search_tool_result"):
    """What came of a tool that runs where the model does."""


class ImageBlock(TaggedFrame, frozen=True, tag="image"):
    """An image, which is not shown."""


class DocumentBlock(TaggedFrame, frozen=True, tag="document"):
    """A document, which is not shown."""


Block: TypeAlias = (
    TextBlock | ThinkingBlock | RedactedBlock | ToolUse | ServerToolUse | ToolResult
    | ServerToolResult | ImageBlock | DocumentBlock
)  # fmt: skip


class ClaudeTokenCounts(msgspec.Struct, frozen=True):
    """What one call of the model, or a turn's calls, have used."""

    input_tokens: float | None = None
    output_tokens: float | None = None
    cache_creation_input_tokens: float | None = None
    cache_read_input_tokens: float | None = None


class ClaudeMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message as the model's API has it."""

    content: str | list[Block]
    id: str = ""
    model: str = ""
    usage: ClaudeTokenCounts | None = None


# --- frames -------------------------------------------------------------------------------------


class AssistantFrame(TaggedFrame, frozen=True, kw_only=True, tag="assistant"):
    """A block of a message, whole; or an error of the API, put as a message."""

    message: ClaudeMessage
    parent_tool_use_id: Maybe = None
    error: Maybe = None
    api_error_status: int | None = None
    api_error_type: Maybe = None
    api_error: Maybe = None
    api_error_params: Json = None


class UserFrame(TaggedFrame, frozen=True, kw_only=True, tag="user"):
    """What the model was told: by tools, by Claude Code itself, or our own words again."""

    message: ClaudeMessage
    uuid: str = ""
    parent_tool_use_id: Maybe = None
    is_replay: bool = msgspec.field(default=False, name="isReplay")


class ClaudeDelta(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """More of a block."""

    text: str = ""
    thinking: str = ""


class StreamedMessage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A message that begins."""

    id: str = ""


class StreamedApiEvent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An event of the model's API, as it came."""

    type: str
    index: int = 0
    message: StreamedMessage | None = None
    delta: ClaudeDelta | None = None


class StreamEventFrame(TaggedFrame, frozen=True, kw_only=True, gc=False, tag="stream_event"):
    """A preview of what an `Assistant` will tell."""

    event: StreamedApiEvent
    parent_tool_use_id: Maybe = None
    api_message_id: Maybe = None
    abandoned_blocks: Json = None


class ModelUsage(msgspec.Struct, frozen=True, rename="camel"):
    """What one model was used for."""

    input_tokens: float = 0
    output_tokens: float = 0
    cache_read_input_tokens: float = 0
    cache_creation_input_tokens: float = 0
    thinking_tokens: float = 0
    cost_usd: float = msgspec.field(default=0, name="costUSD")
    context_window: float | None = None


class ToolDenial(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call that was not allowed."""

    tool_name: str
    tool_use_id: Maybe = None


class ResultFrame(TaggedFrame, frozen=True, kw_only=True, tag="result"):
    """The end of a turn, for better or worse: `success` with `is_error` is none."""

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
    """Who asked for the turn, if not we."""

    @property
    def ended_by(self) -> str | None:
        """Why the turn has ended, as far as the agent says."""
        return self.stop_reason or self.terminal_reason


class BackgroundTask(msgspec.Struct, frozen=True, kw_only=True):
    """Work that goes on beside the turn."""

    task_id: str


class BackgroundTaskPatch(msgspec.Struct, frozen=True, kw_only=True):
    """What has changed about a task."""

    status: Maybe = None
    is_backgrounded: bool | None = None


class CompactMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """How a context was shortened."""

    trigger: Maybe = None


SystemKind: TypeAlias = Literal[
    "init", "status", "session_state_changed", "api_retry", "model_fallback",
    "model_refusal_no_fallback", "informational", "notification", "permission_denied",
    "compact_boundary", "task_started", "task_progress", "task_updated", "task_notification",
    "background_tasks_changed", "thinking_tokens", "hook_started", "hook_progress",
    "hook_response", "control_request_progress", "ui_invalidate", "local_command_output",
]  # fmt: skip


class SystemFrame(TaggedFrame, frozen=True, kw_only=True, tag="system"):
    """What Claude Code tells of itself; which fields are there depends on the subtype."""

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
    """What became of a message of ours: queued, started, completed, cancelled, discarded."""

    command_uuid: str
    state: str


class RateLimitInfo(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How near a limit of a subscription is."""

    status: str = ""
    resets_at: float | None = None
    rate_limit_type: Maybe = None
    utilization: float | None = None


class RateLimitFrame(TaggedFrame, frozen=True, kw_only=True, tag="rate_limit_event"):
    """A limit of a subscription has come nearer, or was hit."""

    rate_limit_info: RateLimitInfo


class ConversationReset(TaggedFrame, frozen=True, kw_only=True, tag="conversation_reset"):
    """The session begins anew, under another id."""

    new_conversation_id: str


class KeepAliveFrame(TaggedFrame, frozen=True, tag="keep_alive"):
    """It lives."""


class HostRequestBody(msgspec.Struct, frozen=True, kw_only=True):
    """What Claude Code wants of its host; which fields are there depends on the subtype."""

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
    """A question to its host."""

    request_id: str
    request: HostRequestBody


class HostRequestWithdrawn(TaggedFrame, frozen=True, kw_only=True, tag="control_cancel_request"):
    """The question wants no answer any more."""

    request_id: str


class ControlReplyBody(msgspec.Struct, frozen=True, kw_only=True):
    """What it answers to a request of ours."""

    subtype: str
    request_id: str
    response: Json = None
    error: Maybe = None
    error_code: Maybe = None


class ControlReplyFrame(TaggedFrame, frozen=True, kw_only=True, tag="control_response"):
    """An answer."""

    response: ControlReplyBody


ClaudeFrame: TypeAlias = (
    AssistantFrame | UserFrame | StreamEventFrame | ResultFrame | SystemFrame | MessageLifecycle | RateLimitFrame | ConversationReset
    | KeepAliveFrame | HostRequest | HostRequestWithdrawn | ControlReplyFrame
)  # fmt: skip

DECODER: Final = msgspec.json.Decoder[ClaudeFrame](ClaudeFrame)


def _repair_result(frame: UntypedFrame) -> ClaudeFrame | UntypedFrame:
    """Read a result field by field: without it a turn would never end."""
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
"""Returns what each line of a read is."""
