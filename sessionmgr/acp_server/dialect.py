"""The two versions of the protocol: how each says the same, as JSON. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.acp_server.offer import AgentOffer
    from sessionmgr.acp_server.params import JsonObject
    from sessionmgr.model import Json, PermissionMode

Author: TypeAlias = Literal["user_message", "agent_message", "agent_thought"]

ALLOW: Final = "allow"
REJECT: Final = "reject"
DEFAULT_MODEL: Final = "default"
"""The choice of the provider's own model."""
MODE_OPTION: Final = "mode"
MODEL_OPTION: Final = "model"

_OPTIONS: Final[list[Json]] = [
    {"optionId": ALLOW, "name": "Allow", "kind": "allow_once"},
    {"optionId": REJECT, "name": "Reject", "kind": "reject_once"},
]
_MODE_NAMES: Final = {
    "default": ("Default", "Ask before everything that the provider does not allow by itself"),
    "accept_edits": ("Accept edits", "As default, but edits inside the session's directories"),
    "plan": ("Plan", "Plan only: change neither files nor the system"),
    "full_auto": ("Full auto", "Ask nothing; stay confined where the provider can confine"),
    "dangerously_skip_permissions": ("Skip permissions", "Ask nothing, without a sandbox"),
}


def text_block(text: str) -> JsonObject:
    """Return a block of text."""
    return {"type": "text", "text": text}


def mode_name(mode: PermissionMode) -> tuple[str, str]:
    """Return the name and the description of a permission mode."""
    return _MODE_NAMES[mode.value]


class AcpDialect:
    """Version 1 of the protocol."""

    version: ClassVar[int] = 1
    has_states: ClassVar[bool] = False
    """Whether a prompt is answered at once, and its end is an update."""
    repeats_output: ClassVar[bool] = True
    """Whether an update of a tool's output repeats the output before it."""
    _option_id: ClassVar[str] = "id"

    def __init__(self, client: JsonObject) -> None:
        session = client.get("session")
        session = session if isinstance(session, dict) else {}
        self.has_notices: bool = session.get("notices") is not None
        self.has_compaction: bool = session.get("compaction") is not None

    # --- the handshake and sessions --------------------------------------------------------------

    def initialized(self, info: JsonObject, offer: AgentOffer) -> JsonObject:
        """Return the answer to `initialize`."""
        sessions: JsonObject = {"list": {}, "close": {}}
        if offer.loads:
            sessions["resume"] = {}
        if offer.directories:
            sessions["additionalDirectories"] = {}
        return {
            "protocolVersion": self.version,
            "agentInfo": info,
            "agentCapabilities": {
                "loadSession": offer.loads,
                "promptCapabilities": {
                    "image": offer.images,
                    "audio": False,
                    "embeddedContext": offer.embedded_context,
                },
                "mcpCapabilities": {"http": False, "sse": False},
                "sessionCapabilities": sessions,
            },
            "authMethods": [],
            "_meta": {"steering": {"supported": offer.steering}},
        }

    def session_state(
        self, offer: AgentOffer, mode: PermissionMode, model: str | None
    ) -> JsonObject:
        """Return the modes and options of a session."""
        available: list[Json] = [
            {"id": each.value, "name": mode_name(each)[0], "description": mode_name(each)[1]}
            for each in offer.modes
        ]
        return {
            "modes": {"currentModeId": mode.value, "availableModes": available},
            **self.config_options(offer, mode, model),
        }

    def config_options(
        self, offer: AgentOffer, mode: PermissionMode, model: str | None
    ) -> JsonObject:
        """Return the options of a session."""
        modes: list[Json] = [
            {"value": each.value, "name": mode_name(each)[0], "description": mode_name(each)[1]}
            for each in offer.modes
        ]
        options: list[Json] = [
            {
                self._option_id: MODE_OPTION,
                "name": "Permission mode",
                "description": "What the agent may do without asking; from the next prompt on",
                "category": "mode",
                "type": "select",
                "currentValue": mode.value,
                "options": modes,
            }
        ]
        if offer.models:
            names = (DEFAULT_MODEL, *offer.models)
            choices: list[Json] = [{"value": each, "name": each} for each in names]
            options.append(
                {
                    self._option_id: MODEL_OPTION,
                    "name": "Model",
                    "description": "The model; from the next prompt on",
                    "category": "model",
                    "type": "select",
                    "currentValue": model or DEFAULT_MODEL,
                    "options": choices,
                }
            )
        return {"configOptions": options}

    def config_updates(
        self, offer: AgentOffer, mode: PermissionMode, model: str | None
    ) -> list[JsonObject]:
        """Return the updates after a change of the mode or an option."""
        options = self.config_options(offer, mode, model)
        return [
            {"sessionUpdate": "current_mode_update", "currentModeId": mode.value},
            {"sessionUpdate": "config_option_update", **options},
        ]

    # --- messages --------------------------------------------------------------------------------

    def chunk(self, author: Author, message_id: str, block: JsonObject) -> JsonObject:
        """Return a part of a message."""
        return {"sessionUpdate": f"{author}_chunk", "messageId": message_id, "content": block}

    def whole(
        self, author: Author, message_id: str, blocks: Sequence[JsonObject]
    ) -> list[JsonObject]:
        """Return the updates for a message that was not streamed."""
        return [self.chunk(author, message_id, block) for block in blocks]

    def replaced(self, author: Author, message_id: str, text: str) -> list[JsonObject]:
        """Return the updates for a message that differs from its streamed pieces."""
        del author, message_id, text
        return []  # this version cannot take back what was sent

    # --- tools -----------------------------------------------------------------------------------

    def tool_call(self, call_id: str, fields: JsonObject) -> JsonObject:
        """Return the first update of a tool call."""
        return {"sessionUpdate": "tool_call", "toolCallId": call_id, **fields}

    def tool_update(self, call_id: str, fields: JsonObject) -> JsonObject:
        """Return a later update of a tool call."""
        return {"sessionUpdate": "tool_call_update", "toolCallId": call_id, **fields}

    def tool_output(self, call_id: str, delta: str, output: str) -> JsonObject:
        """Return the update for more output of a tool: the whole output so far, or its end."""
        del delta
        return self.tool_update(call_id, {"content": [tool_text(output)]})

    def permission(self, session_id: str, tool_call: JsonObject) -> JsonObject:
        """Return the parameters of a permission request."""
        return {"sessionId": session_id, "toolCall": tool_call, "options": _OPTIONS}

    # --- the rest --------------------------------------------------------------------------------

    def plan(self, entries: list[Json]) -> JsonObject:
        """Return the update for a plan."""
        return {"sessionUpdate": "plan", "entries": entries}


class AcpDialectV2(AcpDialect):
    """Version 2 of the protocol."""

    version: ClassVar[int] = 2
    has_states: ClassVar[bool] = True
    repeats_output: ClassVar[bool] = False
    _option_id: ClassVar[str] = "configId"

    def __init__(self) -> None:
        super().__init__({})
        self.has_notices = self.has_compaction = True

    def initialized(self, info: JsonObject, offer: AgentOffer) -> JsonObject:
        """Return the answer to `initialize`."""
        prompt: JsonObject = {}
        if offer.images:
            prompt["image"] = {}
        if offer.embedded_context:
            prompt["embeddedContext"] = {}
        session: JsonObject = {"prompt": prompt, "mcp": {"stdio": {}} if offer.mcp else {}}
        if offer.directories:
            session["additionalDirectories"] = {}
        return {
            "protocolVersion": self.version,
            "info": info,
            "capabilities": {"session": session},
            "authMethods": [],
            "_meta": {"steering": {"supported": offer.steering}},
        }

    def session_state(
        self, offer: AgentOffer, mode: PermissionMode, model: str | None
    ) -> JsonObject:
        """Return the options of a session."""
        return self.config_options(offer, mode, model)

    def config_updates(
        self, offer: AgentOffer, mode: PermissionMode, model: str | None
    ) -> list[JsonObject]:
        """Return the update after a change of an option."""
        options = self.config_options(offer, mode, model)
        return [{"sessionUpdate": "config_option_update", **options}]

    def whole(
        self, author: Author, message_id: str, blocks: Sequence[JsonObject]
    ) -> list[JsonObject]:
        """Return the update for a message that was not streamed."""
        return [{"sessionUpdate": author, "messageId": message_id, "content": list(blocks)}]

    def replaced(self, author: Author, message_id: str, text: str) -> list[JsonObject]:
        """Return the update for a message that differs from its streamed pieces."""
        return self.whole(author, message_id, [text_block(text)])

    def tool_call(self, call_id: str, fields: JsonObject) -> JsonObject:
        """Return the first update of a tool call."""
        return self.tool_update(call_id, fields)

    def tool_output(self, call_id: str, delta: str, output: str) -> JsonObject:
        """Return the update for more output of a tool."""
        del output
        return {
            "sessionUpdate": "tool_call_content_chunk",
            "toolCallId": call_id,
            "content": tool_text(delta),
        }

    def permission(self, session_id: str, tool_call: JsonObject) -> JsonObject:
        """Return the parameters of a permission request."""
        return {
            "sessionId": session_id,
            "title": tool_call.get("title") or "Use a tool",
            "subject": {"type": "tool_call", "toolCall": tool_call},
            "options": _OPTIONS,
        }

    def plan(self, entries: list[Json]) -> JsonObject:
        """Return the update for a plan."""
        plan: JsonObject = {"type": "items", "planId": "plan", "entries": entries}
        return {"sessionUpdate": "plan_update", "plan": plan}


def tool_text(text: str) -> JsonObject:
    """Return text as the content of a tool call."""
    return {"type": "content", "content": text_block(text)}


def choose_dialect(version: int, client: JsonObject, *, is_v2: bool) -> AcpDialect:
    """Return the version that a client's `initialize` asks for.

    Version 2 is a draft whose number some clients send in messages of version 1; so the form of the
    message decides, too.
    """
    return AcpDialectV2() if version >= AcpDialectV2.version and is_v2 else AcpDialect(client)
