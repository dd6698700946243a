"""Version 1 of the protocol: the decoders of its messages, and our requests.

Decoders never raise: what has an unknown form is carried. A request is a pair of its method and its
params. `v2.py` overrides what differs in version 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from sessionmgr.model import Json
from sessionmgr_adapters.acp import updates
from sessionmgr_adapters.acp.decode import (
    ConfigOptionsWire,
    PlanWire,
    UpdateDecoder,
    decode_request,
    session_of,
    untyped,
)
from sessionmgr_adapters.acp.frames import PermissionRequest
from sessionmgr_adapters.acp.results import read_answer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sessionmgr.wire import RpcErrorResponse, RpcNotification, RpcRequest, RpcResponse
    from sessionmgr_adapters.acp.frames import AcpAnswer, AcpFrame

CLIENT_NAME: Final = "sessionmgr"
NOTIFICATIONS: Final = frozenset({"session/cancel"})
"""The calls that have no answer."""

COMMON_UPDATES: Final[tuple[type[updates.AcpUpdate], ...]] = (
    *(updates.UserChunk, updates.AgentChunk, updates.ThoughtChunk, updates.ToolCallNews),
    *(PlanWire, updates.PlanRemoved, updates.CommandsUpdate, ConfigOptionsWire),
    *(updates.SessionInfoUpdate, updates.ContextUpdate, updates.NoticeUpdate),
    *(updates.CompactionUpdate, updates.CompactionChunk, updates.SubagentUpdate),
    *(updates.SessionMessage, updates.SessionMessageChunk),
)
_decode_update: Final = UpdateDecoder(
    (*COMMON_UPDATES, updates.ToolCallReport, updates.AgentPlan, updates.ModeUpdate)
)


class AcpCall(NamedTuple):
    """Request to the agent, or a notification of it."""

    method: str
    params: dict[str, Json]


class ClientFeatures(msgspec.Struct, frozen=True, kw_only=True):
    """What we offer to an agent."""

    read_file: bool = False
    write_file: bool = False
    terminal: bool = False
    """Whether the agent can run commands through us."""
    elicitation_form: bool = False
    elicitation_url: bool = False


class AcpMcpServer(msgspec.Struct, frozen=True, kw_only=True):
    """An MCP server for the agent: a command or, with a `url`, a server on the network."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str | None = None
    headers: dict[str, str] = {}
    transport: str = "http"
    """`http` or `sse`, of a server with a `url`."""


class SystemPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """A system prompt, in addition to the agent's own or in its place."""

    text: str
    override: bool = False


class SessionSetup(msgspec.Struct, frozen=True, kw_only=True):
    """What a session is opened with."""

    cwd: str
    directories: tuple[str, ...] = ()
    """Further directories of the session."""
    mcp_servers: tuple[AcpMcpServer, ...] = ()
    system_prompt: SystemPrompt | None = None


class ProtocolV1:
    """Version 1 of the protocol."""

    version: int = 1
    queues_prompts: bool = False
    """Whether a prompt can be sent while the turn of another one runs."""

    def program_version(self, agent_version: str) -> str | None:
        """Return an agent's version for the record of a run; None if it has none."""
        return agent_version or None

    # --- decoders --------------------------------------------------------------------------------

    def session_of(self, message: RpcRequest | RpcNotification) -> str | None:
        """Return the session that a message names; None if it names none."""
        return session_of(message)

    def decode(self, message: RpcRequest | RpcNotification, name: str = "") -> AcpFrame:
        """Return the frame of a message; `name` is our name for a request."""
        if message.method == "session/update":
            return _decode_update(message)
        frame = decode_request(message, name)
        if isinstance(frame, PermissionRequest) and frame.tool_call is None:
            return untyped(message, "no toolCall")
        return frame

    def decode_answer(self, method: str, answer: RpcResponse | RpcErrorResponse) -> AcpAnswer:
        """Return the frame of the answer to a request of ours."""
        return read_answer(method, answer, prompt_ends=True)

    # --- requests --------------------------------------------------------------------------------

    def initialize(self, features: ClientFeatures, client_version: str) -> AcpCall:
        """Return the handshake."""
        return AcpCall(
            "initialize",
            {
                "protocolVersion": self.version,
                "clientInfo": _client_info(client_version),
                "clientCapabilities": {
                    "fs": {
                        "readTextFile": features.read_file,
                        "writeTextFile": features.write_file,
                    },
                    "terminal": features.terminal,
                    "auth": {"terminal": True},
                    "elicitation": elicitation_features(features),
                    "session": {
                        "compaction": {},
                        "notices": {},
                        "configOptions": {"boolean": {}},
                    },
                },
            },
        )

    def authenticate(self, method_id: str) -> AcpCall:
        """Return the request to log in."""
        return AcpCall("authenticate", {"methodId": method_id})

    def new_session(self, setup: SessionSetup) -> AcpCall:
        """Return the request for a new session."""
        return AcpCall("session/new", self._setup(setup))

    def load_session(self, session_id: str, setup: SessionSetup) -> AcpCall:
        """Return the request to continue a session, whose updates are sent again."""
        return AcpCall("session/load", {"sessionId": session_id, **self._setup(setup)})

    def resume_session(self, session_id: str, setup: SessionSetup) -> AcpCall:
        """Return the request to continue a session, without its earlier updates."""
        return AcpCall("session/resume", {"sessionId": session_id, **self._setup(setup)})

    def fork_session(self, session_id: str, setup: SessionSetup) -> AcpCall:
        """Return the request for a copy of a session."""
        return AcpCall("session/fork", {"sessionId": session_id, **self._setup(setup)})

    def prompt(self, session_id: str, blocks: Sequence[Json]) -> AcpCall:
        """Return the prompt of a turn."""
        return AcpCall("session/prompt", {"sessionId": session_id, "prompt": [*blocks]})

    def steer(self, session_id: str, blocks: Sequence[Json]) -> AcpCall:
        """Return a message for the running turn; the agent does not start a turn for it."""
        meta: Json = {"steering": {"idleBehavior": "promptRequired"}}
        params: dict[str, Json] = {"sessionId": session_id, "prompt": [*blocks], "_meta": meta}
        return AcpCall("_session/steering", params)

    def cancel(self, session_id: str) -> AcpCall:
        """Return the notification that cancels the turn."""
        return AcpCall("session/cancel", {"sessionId": session_id})

    def cancel_background(self, session_id: str, work: Json) -> AcpCall | None:
        """Return the request to cancel work in the background; None if it is of unknown form."""
        return None

    def set_mode(self, session_id: str, mode_id: str) -> AcpCall:
        """Return the request for another mode; version 2 has a config option instead."""
        return AcpCall("session/set_mode", {"sessionId": session_id, "modeId": mode_id})

    def set_model(self, session_id: str, model_id: str) -> AcpCall:
        """Return the request for another model, of agents that have no config option for it."""
        return AcpCall("session/set_model", {"sessionId": session_id, "modelId": model_id})

    def set_option(self, session_id: str, option_id: str, value: str | bool) -> AcpCall:
        """Return the request for another value of a config option."""
        params: dict[str, Json] = {"sessionId": session_id, "configId": option_id, "value": value}
        if isinstance(value, bool):
            params["type"] = "boolean"
        return AcpCall("session/set_config_option", params)

    def close_session(self, session_id: str) -> AcpCall:
        """Return the request to end a session, which stays stored."""
        return AcpCall("session/close", {"sessionId": session_id})

    def delete_session(self, session_id: str) -> AcpCall:
        """Return the request to delete a stored session."""
        return AcpCall("session/delete", {"sessionId": session_id})

    def list_sessions(self, cwd: str | None = None, cursor: str | None = None) -> AcpCall:
        """Return the request for a page of the stored sessions."""
        given: dict[str, Json] = {"cwd": cwd, "cursor": cursor}
        return AcpCall(
            "session/list", {name: each for name, each in given.items() if each is not None}
        )

    # --- parts of requests -----------------------------------------------------------------------

    def mcp_server(self, server: AcpMcpServer) -> dict[str, Json]:
        """Return an MCP server, as the agent expects it."""
        if server.url is None:
            return {
                "name": server.name,
                "command": server.command,
                "args": [*server.args],
                "env": _pairs(server.env),
            }
        return {
            "type": server.transport,
            "name": server.name,
            "url": server.url,
            "headers": _pairs(server.headers),
        }

    def _setup(self, setup: SessionSetup) -> dict[str, Json]:
        params: dict[str, Json] = {
            "cwd": setup.cwd,
            "mcpServers": [self.mcp_server(each) for each in setup.mcp_servers],
        }
        if setup.directories:
            params["additionalDirectories"] = [*setup.directories]
        if setup.system_prompt is not None:
            params["systemPrompt"] = {
                "mode": "override" if setup.system_prompt.override else "append",
                "content": [{"type": "text", "text": setup.system_prompt.text}],
            }
        return params


def _client_info(version: str) -> dict[str, Json]:
    return {"name": CLIENT_NAME, "title": CLIENT_NAME, "version": version}


def elicitation_features(features: ClientFeatures) -> dict[str, Json]:
    """Return the kinds of elicitation that we support."""
    offered = {"form": features.elicitation_form, "url": features.elicitation_url}
    return {name: {} for name, is_offered in offered.items() if is_offered}


def _pairs(given: Mapping[str, str]) -> list[Json]:
    return [{"name": name, "value": value} for name, value in given.items()]


V1: Final = ProtocolV1()
