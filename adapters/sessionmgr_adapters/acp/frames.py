"""The frames of a session over ACP, the same for both protocol versions.

A frame is an update of a session, a request of the agent, or the answer to a request of ours.
`v1.py` and `v2.py` decode them from the wire; `updates.py` has the kinds of updates.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from sessionmgr.model import Json
from sessionmgr.wire import NoFrame
from sessionmgr_adapters.acp.updates import (
    AcpUpdate,
    AcpUsage,
    ConfigOption,
    ToolCallUpsert,
)


class SessionUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """An update of a session."""

    session_id: str
    update: AcpUpdate
    meta: Json = None


# --- requests of the agent -----------------------------------------------------------------------


class AgentRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base class of the agent's requests, each of which needs an answer."""

    session_id: str = ""
    name: str = ""
    """Our name for the request, which its answer needs."""


class PermissionOption(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One of the possible answers to a request for permission."""

    option_id: str
    name: str = ""
    kind: str = ""
    """`allow_once`, `allow_always`, `reject_once`, `reject_always`, or a newer one."""


class PermissionRequest(AgentRequest, frozen=True, kw_only=True):
    """The agent asks for permission, or asks the user to choose."""

    options: tuple[PermissionOption, ...]
    tool_call: ToolCallUpsert | None = None
    """The tool call in question, which may appear here first; None if it is about none."""
    title: str | None = None
    """The question (version 2)."""
    description: str | None = None
    command: str | None = None
    """The command in question, if it is about one (version 2)."""
    cwd: str | None = None
    subject: Json = None
    """What it is about, if that is of unknown form (version 2)."""


class ElicitationRequest(AgentRequest, frozen=True, kw_only=True):
    """The agent asks the user for information."""

    mode: str
    """`form`, `url`, or a newer one."""
    message: str = ""
    requested_schema: Json = None
    """The restricted JSON schema of the answer (`form`)."""
    url: str | None = None
    elicitation_id: str | None = None
    tool_call_id: str | None = None


class ReadFileRequest(AgentRequest, frozen=True, kw_only=True):
    """The agent asks for the text of a file."""

    path: str
    line: int | None = None
    """First line, counted from 1."""
    limit: int | None = None
    """Maximum number of lines."""


class WriteFileRequest(AgentRequest, frozen=True, kw_only=True):
    """The agent asks to write the text of a file."""

    path: str
    content: str


class AcpEnvVariable(msgspec.Struct, frozen=True, kw_only=True):
    """An environment variable of a command."""

    name: str
    value: str


class TerminalCreateRequest(AgentRequest, frozen=True, kw_only=True):
    """The agent asks to start a command."""

    command: str
    args: tuple[str, ...] = ()
    env: tuple[AcpEnvVariable, ...] = ()
    cwd: str | None = None
    output_byte_limit: int | None = None


class TerminalRequest(AgentRequest, frozen=True, kw_only=True):
    """Base class of the requests about a command that was started."""

    terminal_id: str


class TerminalOutputRequest(TerminalRequest, frozen=True, kw_only=True):
    """The agent asks for the output so far."""


class TerminalWaitRequest(TerminalRequest, frozen=True, kw_only=True):
    """The agent waits for the end of the command."""


class TerminalKillRequest(TerminalRequest, frozen=True, kw_only=True):
    """The agent asks to end the command; its output stays available."""


class TerminalReleaseRequest(TerminalRequest, frozen=True, kw_only=True):
    """The agent asks to end the command and to forget its output."""


class RequestCancelled(msgspec.Struct, frozen=True, kw_only=True):
    """The agent no longer expects an answer to a request."""

    session_id: str = ""
    name: str
    """Our name for the request."""


class ElicitationCompleted(msgspec.Struct, frozen=True, kw_only=True):
    """The user has followed the URL of an elicitation."""

    session_id: str = ""
    elicitation_id: str


class SilentAcpNotice(msgspec.Struct, frozen=True, kw_only=True):
    """A notification without information about a run."""

    session_id: str = ""
    method: str


# --- answers to our requests ---------------------------------------------------------------------


class AcpCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent can do, the same for both versions."""

    load: bool = False
    resume: bool = False
    list: bool = False
    close: bool = False
    delete: bool = False
    fork: bool = False
    additional_directories: bool = False
    image: bool = False
    audio: bool = False
    embedded_context: bool = False
    mcp_stdio: bool = False
    mcp_http: bool = False
    mcp_sse: bool = False
    logout: bool = False
    system_prompt: bool = False
    system_prompt_override: bool = False


class AuthMethod(msgspec.Struct, frozen=True, kw_only=True):
    """A way to log in."""

    id: str
    name: str = ""
    description: str | None = None
    type: str = "agent"
    """`agent`: `authenticate` logs in; `terminal`: the agent does so if run in a terminal."""
    args: tuple[str, ...] = ()
    """Arguments for the agent in the terminal."""
    env: dict[str, str] = {}
    """Environment for the agent in the terminal."""


class Initialized(msgspec.Struct, frozen=True, kw_only=True):
    """The agent's answer to the handshake."""

    version: int
    """The protocol version that it speaks, whichever it echoes."""
    agent: str = ""
    """The program's name, as it reports it."""
    title: str = ""
    agent_version: str = ""
    capabilities: AcpCapabilities = AcpCapabilities()
    auth_methods: tuple[AuthMethod, ...] = ()
    steers: bool = False
    """Whether it accepts `_session/steering`."""
    meta: Json = None


class SessionMode(msgspec.Struct, frozen=True, kw_only=True):
    """A mode in which a session can be."""

    id: str
    name: str = ""
    description: str | None = None


class SessionModes(msgspec.Struct, frozen=True, kw_only=True):
    """The modes of a session, or its models, and the one in force."""

    current: str | None = None
    available: tuple[SessionMode, ...] = ()


class SessionOpened(msgspec.Struct, frozen=True, kw_only=True):
    """A session was opened, loaded, resumed or forked."""

    method: str
    session_id: str = ""
    """The name of a new session; empty after `session/load` and `session/resume`."""
    modes: SessionModes | None = None
    models: SessionModes | None = None
    options: tuple[ConfigOption, ...] = ()


class PromptEnded(msgspec.Struct, frozen=True, kw_only=True):
    """A turn has ended (version 1)."""

    stop_reason: str
    usage: AcpUsage | None = None
    meta: Json = None


class PromptAccepted(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt has been inserted into the conversation (version 2)."""

    message_id: str


class OptionsChanged(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to `session/set_config_option`: all options in their present state."""

    options: tuple[ConfigOption, ...] = ()


class ListedSession(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A session that the agent has stored."""

    session_id: str
    cwd: str = ""
    title: str | None = None
    updated_at: str | None = None


class SessionsListed(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the agent's stored sessions."""

    sessions: tuple[ListedSession, ...] = ()
    next_cursor: str | None = None


class SteeringAnswered(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to `_session/steering`."""

    outcome: str
    """`injected`, or `promptRequired` if no turn was running."""


class Acknowledged(msgspec.Struct, frozen=True, kw_only=True):
    """A request was carried out, and its answer has no content."""

    method: str


class AcpRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """A request was refused, or its answer has an unknown form (`code` is None)."""

    method: str
    code: int | None
    message: str
    data: Json = None


AcpAnswer: TypeAlias = (
    Initialized
    | SessionOpened
    | PromptEnded
    | PromptAccepted
    | OptionsChanged
    | SessionsListed
    | SteeringAnswered
    | Acknowledged
    | AcpRefusal
)
AcpFrame: TypeAlias = (
    SessionUpdate
    | AgentRequest
    | RequestCancelled
    | ElicitationCompleted
    | SilentAcpNotice
    | AcpAnswer
    | NoFrame
)
