"""Version 2 of the protocol, a draft: what differs from version 1.

A prompt is answered once it is in the conversation, and a `state_update` reports the end of its
turn. There are no modes apart from config options, no files and no terminals of the client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from sessionmgr.wire import UntypedFrame
from sessionmgr_adapters.acp import updates
from sessionmgr_adapters.acp.decode import (
    UpdateDecoder,
    as_dict,
    as_text,
    convert_leniently,
    decode_request,
    untyped,
)
from sessionmgr_adapters.acp.frames import PermissionRequest
from sessionmgr_adapters.acp.results import read_answer
from sessionmgr_adapters.acp.updates import ToolCallUpsert
from sessionmgr_adapters.acp.v1 import (
    COMMON_UPDATES,
    AcpCall,
    ClientFeatures,
    ProtocolV1,
    elicitation_features,
)

if TYPE_CHECKING:
    from sessionmgr.model import Json
    from sessionmgr.wire import RpcErrorResponse, RpcNotification, RpcRequest, RpcResponse
    from sessionmgr_adapters.acp.frames import AcpAnswer, AcpFrame
    from sessionmgr_adapters.acp.v1 import AcpMcpServer, SessionSetup

_decode_update: Final = UpdateDecoder(
    (
        *COMMON_UPDATES,
        *(updates.UserContent, updates.AgentContent, updates.ThoughtContent, updates.StateUpdate),
        *(updates.ToolContentChunk, updates.TerminalNews, updates.TerminalChunk),
    )
)
_WITHOUT_CLIENT: Final = ("fs/", "terminal/")
"""Requests of version 1 for what clients no longer have."""


class ProtocolV2(ProtocolV1):
    """Version 2 of the protocol."""

    version = 2
    queues_prompts = True

    def program_version(self, agent_version: str) -> str | None:
        """Return an agent's version for the record of a run, with that of the protocol."""
        return f"{agent_version} (ACP {self.version})".strip()

    def decode(self, message: RpcRequest | RpcNotification, name: str = "") -> AcpFrame:
        """Return the frame of a message; `name` is our name for a request."""
        if message.method == "session/update":
            return _decode_update(message)
        if message.method.startswith(_WITHOUT_CLIENT):
            return untyped(message, "unknown method")
        frame = decode_request(message, name)
        return _with_subject(frame) if isinstance(frame, PermissionRequest) else frame

    def decode_answer(self, method: str, answer: RpcResponse | RpcErrorResponse) -> AcpAnswer:
        """Return the frame of the answer to a request of ours."""
        return read_answer(method, answer, prompt_ends=False)

    def initialize(self, features: ClientFeatures, client_version: str) -> AcpCall:
        """Return the handshake, with the fields of version 1 for agents that only speak that."""
        method, params = super().initialize(features, client_version)
        capabilities: Json = {
            "auth": {"terminal": {}},
            "elicitation": elicitation_features(features),
        }
        return AcpCall(
            method, {**params, "info": params["clientInfo"], "capabilities": capabilities}
        )

    def authenticate(self, method_id: str) -> AcpCall:
        """Return the request to log in."""
        return AcpCall("auth/login", {"methodId": method_id})

    def load_session(self, session_id: str, setup: SessionSetup) -> AcpCall:
        """Return the request to continue a session, whose updates are sent again."""
        method, params = self.resume_session(session_id, setup)
        return AcpCall(method, {**params, "replayFrom": {"type": "start"}})

    def set_option(self, session_id: str, option_id: str, value: str | bool) -> AcpCall:
        """Return the request for another value of a config option."""
        method, params = super().set_option(session_id, option_id, value)
        return AcpCall(method, {"type": "id", **params})

    def cancel_tool_call(self, session_id: str, tool_call_id: str) -> AcpCall:
        """Return the request to cancel one tool call."""
        return AcpCall("tool_call/cancel", {"sessionId": session_id, "toolCallId": tool_call_id})

    def cancel_background(self, session_id: str, work: Json) -> AcpCall | None:
        """Return the request to cancel work in the background; None if it is of unknown form."""
        match work:
            case {"type": "terminal", "terminalId": str(name)}:
                params: dict[str, Json] = {"sessionId": session_id, "terminalId": name}
                return AcpCall("terminal/cancel", params)
            case {"type": "tool_call", "toolCallId": str(name)}:
                return self.cancel_tool_call(session_id, name)
            case {"type": "subagent", "sessionId": str(name)}:
                return self.cancel(name)
            case _:
                return None

    def mcp_server(self, server: AcpMcpServer) -> dict[str, Json]:
        """Return an MCP server, as the agent expects it."""
        return {"type": "stdio", **super().mcp_server(server)}


def _with_subject(request: PermissionRequest) -> PermissionRequest:
    """Return a request with the tool call or the command that it is about."""
    match request.subject:
        case {"type": "tool_call", "toolCall": call}:
            found = convert_leniently(call, ToolCallUpsert)
            return request if isinstance(found, UntypedFrame) else replace(request, tool_call=found)
        case {"type": "command", "command": str(command)}:
            subject = as_dict(request.subject)
            tool = as_text(subject.get("toolCallId"))
            return replace(
                request,
                command=command,
                cwd=as_text(subject.get("cwd")) or None,
                tool_call=ToolCallUpsert(tool_call_id=tool) if tool else None,
            )
        case _:
            return request


V2: Final = ProtocolV2()
