"""The updates of an ACP session: what an agent reports about it, in either protocol version.

An update is decoded as it is on the wire; its types are open, because agents add to them. The
version's module replaces those whose form differs between the versions. A field of type
`UnsetType` may be absent, which leaves its value as it was; null removes the value.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from sessionmgr.model import Json


class ContentBlock(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A piece of content; `type` says which of the other fields it has."""

    type: str
    """`text`, `image`, `audio`, `resource_link`, `resource`, or a newer one."""
    text: str | None = None
    data: str | None = None
    """The bytes of an image or of audio, in base64."""
    mime_type: str | None = None
    uri: str | None = None
    name: str | None = None
    resource: Json = None


class AcpUpdate(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="sessionUpdate"
):
    """Base class of updates."""

    meta: Json = msgspec.field(name="_meta", default=None)
    """Extensions that are not in the protocol."""


# --- messages ------------------------------------------------------------------------------------


class ContentChunk(AcpUpdate, frozen=True, kw_only=True):
    """A further piece of a message; agents of version 1 seldom name the message."""

    content: ContentBlock
    message_id: str | None = None


class UserChunk(ContentChunk, frozen=True, kw_only=True, tag="user_message_chunk"):
    """A further piece of a message of the user: an echo, or part of a replay."""


class AgentChunk(ContentChunk, frozen=True, kw_only=True, tag="agent_message_chunk"):
    """A further piece of a message of the agent."""


class ThoughtChunk(ContentChunk, frozen=True, kw_only=True, tag="agent_thought_chunk"):
    """A further piece of the agent's reasoning."""


class WholeContent(AcpUpdate, frozen=True, kw_only=True):
    """A message in its present state, in place of what was reported of it before (version 2)."""

    message_id: str
    content: tuple[ContentBlock, ...] | UnsetType | None = UNSET


class UserContent(WholeContent, frozen=True, kw_only=True, tag="user_message"):
    """A message of the user in its present state."""


class AgentContent(WholeContent, frozen=True, kw_only=True, tag="agent_message"):
    """A message of the agent in its present state."""


class ThoughtContent(WholeContent, frozen=True, kw_only=True, tag="agent_thought"):
    """A piece of the agent's reasoning in its present state."""


# --- tools ---------------------------------------------------------------------------------------


class ToolLocation(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a tool call reads or changes."""

    path: str
    line: int | None = None


class ToolCallUpsert(AcpUpdate, frozen=True, kw_only=True):
    """A new tool call, or news of one; a call may first appear in either form of it.

    The items of `content` are JSON, because `tool_output` shows them unchanged.
    """

    tool_call_id: str
    title: str | UnsetType | None = UNSET
    kind: str | UnsetType | None = UNSET
    """`read`, `edit`, `delete`, `move`, `search`, `execute`, `think`, `fetch`, `switch_mode`, …"""
    status: str | UnsetType | None = UNSET
    """`pending`, `in_progress`, `completed`, `failed`; version 2 has more."""
    name: str | UnsetType | None = UNSET
    raw_input: Json | UnsetType = UNSET
    raw_output: Json | UnsetType = UNSET
    content: tuple[Json, ...] | UnsetType | None = UNSET
    locations: tuple[ToolLocation, ...] | UnsetType | None = UNSET
    capabilities: Json | UnsetType = UNSET
    """What can be asked of the call at present: `cancel` (version 2)."""


class ToolCallReport(ToolCallUpsert, frozen=True, kw_only=True, tag="tool_call"):
    """A new tool call (version 1)."""


class ToolCallNews(ToolCallUpsert, frozen=True, kw_only=True, tag="tool_call_update"):
    """News of a tool call; in version 2 also a new one."""


class ToolContentChunk(AcpUpdate, frozen=True, kw_only=True, tag="tool_call_content_chunk"):
    """A further item of a tool call's content (version 2)."""

    tool_call_id: str
    content: Json


class TerminalNews(AcpUpdate, frozen=True, kw_only=True, tag="terminal_update"):
    """News of a terminal that the agent owns and only shows (version 2)."""

    terminal_id: str
    command: str | UnsetType | None = UNSET
    cwd: str | UnsetType | None = UNSET
    output: Json | UnsetType = UNSET
    exit_status: Json | UnsetType = UNSET
    capabilities: Json | UnsetType = UNSET
    """What can be asked of the terminal at present: `cancel`."""


class TerminalChunk(AcpUpdate, frozen=True, kw_only=True, tag="terminal_output_chunk"):
    """Further output of a terminal that the agent owns, in base64 (version 2)."""

    terminal_id: str
    data: str


# --- the session ---------------------------------------------------------------------------------


class AcpPlanEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a plan."""

    content: str = ""
    status: str = "pending"
    priority: str | None = None


class AgentPlan(AcpUpdate, frozen=True, kw_only=True, tag="plan"):
    """The plan in its present state."""

    entries: tuple[AcpPlanEntry, ...] = ()


class PlanRemoved(AcpUpdate, frozen=True, kw_only=True, tag="plan_removed"):
    """A plan is no longer followed."""

    plan_id: str = ""


class CommandsUpdate(AcpUpdate, frozen=True, kw_only=True, tag="available_commands_update"):
    """The slash commands that the agent offers at present."""

    available_commands: tuple[Json, ...] = ()


class ModeUpdate(AcpUpdate, frozen=True, kw_only=True, tag="current_mode_update"):
    """The session's mode has changed."""

    current_mode_id: str


class ConfigChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A value that a config option can have."""

    value: str
    name: str = ""
    description: str | None = None


class ConfigOption(msgspec.Struct, frozen=True, kw_only=True):
    """A setting of the session that the client can change."""

    id: str
    name: str = ""
    category: str | None = None
    """`mode`, `model`, `model_config`, `thought_level`, or one of the agent's own."""
    type: str = "select"
    """`select`, `boolean`, or a newer one."""
    value: Json = None
    """The value in force."""
    choices: tuple[ConfigChoice, ...] = ()
    """The possible values of a `select`, those of its groups in their order."""


class ConfigUpdate(AcpUpdate, frozen=True, kw_only=True):
    """The config options in their present state."""

    options: tuple[ConfigOption, ...]


class SessionInfoUpdate(AcpUpdate, frozen=True, kw_only=True, tag="session_info_update"):
    """The session's title has changed."""

    title: str | UnsetType | None = UNSET
    updated_at: str | UnsetType | None = UNSET


class AcpCost(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of the session so far."""

    amount: float
    currency: str = ""


class AcpUsage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Numbers of tokens, as an agent reports them."""

    input_tokens: float = 0
    output_tokens: float = 0
    total_tokens: float = 0
    thought_tokens: float | None = None
    cached_read_tokens: float | None = None
    cached_write_tokens: float | None = None


class ContextUpdate(AcpUpdate, frozen=True, kw_only=True, tag="usage_update"):
    """The used part of the model's context, and the cost so far."""

    used: float = 0
    size: float = 0
    cost: AcpCost | None = None


class NoticeUpdate(AcpUpdate, frozen=True, kw_only=True, tag="notice"):
    """A notice for the user."""

    severity: str = "info"
    """`info`, `warning`, `error`, or a newer one."""
    title: str = ""
    description: str | None = None


class CompactionUpdate(AcpUpdate, frozen=True, kw_only=True, tag="compaction_update"):
    """The state of a compaction of the context."""

    compaction_id: str
    status: str
    """`in_progress`, `completed`, `failed`, `cancelled`, or a newer one."""
    error: str | None = None


class CompactionChunk(AcpUpdate, frozen=True, kw_only=True, tag="compaction_summary_chunk"):
    """A further piece of a compaction's summary."""

    compaction_id: str
    content: ContentBlock


class StateUpdate(AcpUpdate, frozen=True, kw_only=True, tag="state_update"):
    """The state of the session's work (version 2): `idle` is the end of a turn."""

    state: str
    """`running`, `idle`, `requires_action`, or a newer one."""
    stop_reason: str | None = None
    """Why the turn ended, of an idle session that had one; `error` has an `error`."""
    usage: AcpUsage | None = None
    background: tuple[Json, ...] | None = None
    """Work that goes on while the session is idle."""
    error: Json = None


class SubagentUpdate(AcpUpdate, frozen=True, kw_only=True, tag="subagent_update"):
    """News of a session of a sub-agent, announced on the parent's session."""

    session_id: str
    title: str | UnsetType | None = UNSET
    description: str | UnsetType | None = UNSET
    state: Json | UnsetType = UNSET
    capabilities: Json | UnsetType = UNSET
    """What can be asked of the sub-agent at present: `cancel`."""


class SessionMessage(AcpUpdate, frozen=True, kw_only=True, tag="session_message"):
    """A message between sessions."""

    message_id: str
    sender_session_id: str | UnsetType | None = UNSET
    recipient_session_id: str | UnsetType | None = UNSET
    content: tuple[ContentBlock, ...] | UnsetType | None = UNSET


class SessionMessageChunk(ContentChunk, frozen=True, kw_only=True, tag="session_message_chunk"):
    """A further piece of a message between sessions."""


class UnknownUpdate(AcpUpdate, frozen=True, kw_only=True):
    """An update of unknown form, unchanged."""

    value: Json
