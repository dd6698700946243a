"""Parameters of the client's requests, in both versions; unknown parameters are ignored."""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from sessionmgr.acp_server.errors import INVALID_PARAMS, AcpRequestRefused
from sessionmgr.model import Json, encode_json, parse_json
from sessionmgr.wire import RpcId

P = TypeVar("P", bound=msgspec.Struct)

JsonObject = dict[str, Json]


class AcpParams(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base class of parameters."""


class InitializeParams(AcpParams, frozen=True, kw_only=True):
    """Parameters of `initialize`; version 2 has `info` and `capabilities`."""

    protocol_version: int
    client_capabilities: JsonObject | None = None
    info: JsonObject | None = None
    capabilities: JsonObject | None = None


class SessionParams(AcpParams, frozen=True, kw_only=True):
    """Parameters of a request about one session."""

    session_id: str


class NewSessionParams(AcpParams, frozen=True, kw_only=True):
    """Parameters of `session/new`."""

    cwd: str | None = None
    mcp_servers: tuple[JsonObject, ...] = ()
    additional_directories: tuple[str, ...] = ()


class StoredSessionParams(NewSessionParams, frozen=True, kw_only=True):
    """Parameters of `session/load` and `session/resume`."""

    session_id: str
    replay_from: JsonObject | None = None


class ListSessionsParams(AcpParams, frozen=True, kw_only=True):
    """Parameters of `session/list`."""

    cwd: str | None = None
    cursor: str | None = None


class PromptParams(SessionParams, frozen=True, kw_only=True):
    """Parameters of `session/prompt` and `_session/steering`."""

    prompt: tuple[JsonObject, ...]


class ModeParams(SessionParams, frozen=True, kw_only=True):
    """Parameters of `session/set_mode`."""

    mode_id: str


class ConfigOptionParams(SessionParams, frozen=True, kw_only=True):
    """Parameters of `session/set_config_option`."""

    config_id: str
    value: Json = None


class CancelRequestParams(AcpParams, frozen=True, kw_only=True):
    """Parameters of `$/cancel_request`."""

    request_id: RpcId | None = None


_EMPTY: Final = b"{}"


def read_params(data: bytes, of: type[P]) -> P:
    """Decode parameters.

    Raises:
        AcpRequestRefused: They do not have the type; the message names the field.
    """
    try:
        return msgspec.json.decode(data or _EMPTY, type=of)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    try:  # half a surrogate pair, and the like
        return msgspec.json.decode(encode_json(parse_json(data)), type=of)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise AcpRequestRefused(INVALID_PARAMS, f"invalid params: {error}") from None
