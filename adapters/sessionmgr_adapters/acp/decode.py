"""Decoders from the messages of an agent to frames, for both protocol versions. None raises.

A malformed field that may be absent is left out, as the protocol demands; a message that is still
of unknown form is carried unchanged.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Protocol, TypeVar, Union, cast

import msgspec
from msgspec.structs import replace

from sessionmgr.model import Json, UnreadableJson, encode_json, parse_json
from sessionmgr.wire import RpcRequest, UntypedFrame
from sessionmgr_adapters.acp import frames, updates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sessionmgr.wire import RpcNotification

T = TypeVar("T")

REFUSALS: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
MAX_REPAIRS: Final = 20
"""Maximum number of malformed fields that are left out of a message."""
_PATH: Final = re.compile(r"at `\$((?:\.\w+)+)[^`]*`$")
_SILENT: Final = frozenset({"auth/status_update", "_auth/status_update"})
_BLOCKS: Final = frozenset({"text", "image", "audio", "resource_link", "resource"})

REQUESTS: Final[dict[str, type[frames.AgentRequest]]] = {
    "session/request_permission": frames.PermissionRequest,
    "elicitation/create": frames.ElicitationRequest,
    "fs/read_text_file": frames.ReadFileRequest,
    "fs/write_text_file": frames.WriteFileRequest,
    "terminal/create": frames.TerminalCreateRequest,
    "terminal/output": frames.TerminalOutputRequest,
    "terminal/wait_for_exit": frames.TerminalWaitRequest,
    "terminal/kill": frames.TerminalKillRequest,
    "terminal/release": frames.TerminalReleaseRequest,
}


# --- generic -------------------------------------------------------------------------------------


def decode_leniently(data: bytes, of: type[T]) -> T | UntypedFrame:
    """Decode JSON to a type, without its malformed fields."""
    try:
        return msgspec.json.decode(data, type=of)
    except REFUSALS as refusal:
        value = read_json(data)
        return UntypedFrame(None, str(refusal)) if value is None else convert_leniently(value, of)


def convert_leniently(value: Json, of: type[T]) -> T | UntypedFrame:
    """Convert JSON to a type, without its malformed fields."""
    repaired = value
    why = ""
    for _ in range(MAX_REPAIRS):
        try:
            return msgspec.convert(repaired, of)
        except (msgspec.ValidationError, RecursionError) as error:
            why = str(error)
        found = _PATH.search(why)
        if found is None:
            break
        repaired = _without(repaired, found[1].split(".")[1:])
    return UntypedFrame(value, why)


def _without(value: Json, path: Sequence[str]) -> Json:
    """Return JSON without the field at a path."""
    name, *rest = path
    fields = as_dict(value)
    if rest:
        return {**fields, name: _without(fields.get(name), rest)}
    return {other: each for other, each in fields.items() if other != name}


def read_json(data: bytes) -> Json:
    """Return JSON; null if there is none, or if it is unreadable."""
    value = parse_json(data or b"null")
    return None if isinstance(value, UnreadableJson) else value


def as_dict(value: Json) -> dict[str, Json]:
    """Return a JSON object; an empty one if it is none."""
    return value if isinstance(value, dict) else {}


def as_list(value: Json) -> list[Json]:
    """Return a JSON array; an empty one if it is none."""
    return value if isinstance(value, list) else []


def as_text(value: Json) -> str:
    """Return a JSON string; an empty one if it is none."""
    return value if isinstance(value, str) else ""


class _Address(msgspec.Struct, rename="camel"):
    session_id: str | None = None


def session_of(message: RpcRequest | RpcNotification) -> str | None:
    """Return the session that a message names; None if it names none."""
    try:
        return msgspec.json.decode(message.params or b"{}", type=_Address).session_id
    except REFUSALS:
        return as_text(as_dict(read_json(message.params)).get("sessionId")) or None


def untyped(message: RpcRequest | RpcNotification, why: str) -> UntypedFrame:
    """Return a message of unknown form, to be carried."""
    return UntypedFrame({"method": message.method, "params": read_json(message.params)}, why)


# --- updates -------------------------------------------------------------------------------------


class ConfigOptionsWire(updates.AcpUpdate, frozen=True, kw_only=True, tag="config_option_update"):
    """The config options, as they are on the wire."""

    config_options: Json


class PlanWire(updates.AcpUpdate, frozen=True, kw_only=True, tag="plan_update"):
    """One of the session's plans, as it is on the wire."""

    plan: dict[str, Json]


class _UpdateParams(Protocol):
    session_id: str
    update: updates.AcpUpdate
    meta: Json


class UpdateDecoder:
    """Decoder of the updates of some types; others become an `UnknownUpdate`."""

    def __init__(self, types: Sequence[type[updates.AcpUpdate]]) -> None:
        union: object = Union[tuple(types)]  # noqa: UP007  # of as many as there are
        tagged = msgspec.defstruct(
            "_UpdateParams",
            [
                ("session_id", str),
                ("update", union),
                ("meta", Json, msgspec.field(name="_meta", default=None)),
            ],
            rename="camel",
        )
        self._type: Final = cast("type[_UpdateParams]", tagged)
        self._decode: Final = msgspec.json.Decoder(self._type).decode

    def __call__(self, message: RpcNotification | RpcRequest) -> frames.AcpFrame:
        """Return the frame of a `session/update`."""
        try:
            params: _UpdateParams | UntypedFrame = self._decode(message.params)
        except REFUSALS:
            params = convert_leniently(read_json(message.params), self._type)
        if isinstance(params, UntypedFrame):
            return self._unknown(message, params.why)
        update = _in_common_form(params.update)
        if update is None:
            return self._unknown(message, "content of unknown form")
        return frames.SessionUpdate(session_id=params.session_id, update=update, meta=params.meta)

    @staticmethod
    def _unknown(message: RpcNotification | RpcRequest, why: str) -> frames.AcpFrame:
        params = as_dict(read_json(message.params))
        session, value = params.get("sessionId"), params.get("update")
        if not isinstance(session, str) or not isinstance(value, dict):
            return untyped(message, why)
        return frames.SessionUpdate(
            session_id=session, update=updates.UnknownUpdate(value=value), meta=params.get("_meta")
        )


def _in_common_form(update: updates.AcpUpdate) -> updates.AcpUpdate | None:
    """Return an update in the form of the model; None if its content is of unknown form."""
    match update:
        case updates.ContentChunk(content=block) | updates.CompactionChunk(content=block):
            return update if block.type in _BLOCKS else None
        case updates.WholeContent(content=tuple() as blocks):
            return update if all(each.type in _BLOCKS for each in blocks) else None
        case ConfigOptionsWire(config_options=options):
            return updates.ConfigUpdate(options=config_options(options), meta=update.meta)
        case PlanWire(plan=plan):
            return _plan(plan, update.meta)
        case _:
            return update


def _plan(plan: Mapping[str, Json], meta: Json) -> updates.AgentPlan | None:
    match plan:
        case {"type": "items", "entries": list(given)}:
            entries = [convert_leniently(each, updates.AcpPlanEntry) for each in given]
            known = tuple(each for each in entries if not isinstance(each, UntypedFrame))
        case {"type": "markdown", "content": str(text)} | {"type": "file", "uri": str(text)}:
            known = (updates.AcpPlanEntry(content=text),)
        case _:
            return None
    return updates.AgentPlan(entries=known, meta=meta)


def config_options(value: Json) -> tuple[updates.ConfigOption, ...]:
    """Return config options; a version names their id `id`, the other `configId`."""
    found: list[updates.ConfigOption] = []
    for each in map(as_dict, as_list(value)):
        name = each.get("configId", each.get("id"))
        if isinstance(name, str):
            option = updates.ConfigOption(
                id=name,
                name=as_text(each.get("name")),
                category=as_text(each.get("category")) or None,
                type=as_text(each.get("type")) or "select",
                value=each.get("currentValue"),
                choices=tuple(_choices(each.get("options"))),
            )
            found.append(option)
    return tuple(found)


def _choices(value: Json) -> list[updates.ConfigChoice]:
    found: list[updates.ConfigChoice] = []
    for each in map(as_dict, as_list(value)):
        if "options" in each:
            found += _choices(each["options"])
        elif isinstance(each.get("value"), str):
            found.append(
                updates.ConfigChoice(
                    value=as_text(each["value"]),
                    name=as_text(each.get("name")),
                    description=as_text(each.get("description")) or None,
                )
            )
    return found


# --- other messages ------------------------------------------------------------------------------


def decode_request(message: RpcRequest | RpcNotification, name: str) -> frames.AcpFrame:
    """Return the frame of a request of the agent, or of one of its other notifications."""
    params = as_dict(read_json(message.params))
    session = as_text(params.get("sessionId"))
    match message.method, params:
        case "$/cancel_request", {"requestId": int() | str() as request}:
            # The connection names a request by its encoded id.
            return frames.RequestCancelled(session_id=session, name=encode_json(request).decode())
        case "elicitation/complete", {"elicitationId": str(elicitation)}:
            return frames.ElicitationCompleted(session_id=session, elicitation_id=elicitation)
        case method, _ if method in _SILENT:
            return frames.SilentAcpNotice(session_id=session, method=method)
        case _:
            pass
    wanted = REQUESTS.get(message.method)
    if wanted is None or not isinstance(message, RpcRequest):
        return untyped(message, "unknown method")
    frame = decode_leniently(message.params or b"{}", wanted)
    return untyped(message, frame.why) if isinstance(frame, UntypedFrame) else named(frame, name)


def named(request: frames.AgentRequest, name: str) -> frames.AgentRequest:
    """Return a request with our name for it."""
    return replace(request, name=name)
