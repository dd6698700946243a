"""JSON-RPC 2.0 messages, one per line: decoding and encoding.

Decoding never fails: each input becomes a value. Only the envelope is decoded; parameters, results
and the data of errors stay bytes, copied so that they do not keep a whole read alive, and code that
knows their type decodes them. The member "jsonrpc" is ignored, because Codex omits it.

There are two id spaces. An `RpcRequest` bears an id of the peer; an `RpcResponse` or an
`RpcErrorResponse` bears one of ours, which `JsonRpcPeer` of the kit knows. Both sides may use the
same ids, so the kind of a message depends on its members alone: a message with a method is no
response. 1 and "1" are different ids.
"""

from __future__ import annotations

from typing import Final, TypeAlias, TypeVar

import msgspec

from sessionmgr.model import UnreadableJson, encode_json, parse_json
from sessionmgr.wire.lines import Line
from sessionmgr.wire.noise import MalformedFrame, NoiseLine, strip_wrapping
from sessionmgr.wire.oversized import OversizedFrame

T = TypeVar("T")

RpcId: TypeAlias = int | str


class RpcRequest(msgspec.Struct, frozen=True, gc=False):
    """A request, which expects a response with the same id."""

    id: RpcId | None
    method: str
    params: bytes = b""
    """JSON; empty if there are none."""


class RpcNotification(msgspec.Struct, frozen=True, gc=False):
    """A notification: it has no response."""

    method: str
    params: bytes = b""
    """JSON; empty if there are none."""


class RpcResponse(msgspec.Struct, frozen=True, gc=False):
    """A successful response."""

    id: RpcId | None
    result: bytes
    """JSON."""


class RpcErrorResponse(msgspec.Struct, frozen=True, gc=False):
    """An error response. Without an id, the peer could not read one of our lines."""

    id: RpcId | None
    code: int | None
    """None if the error does not have the form of JSON-RPC; `data` is then the whole of it."""
    message: str
    data: bytes = b""
    """JSON; empty if there is none."""


RpcMessage: TypeAlias = RpcRequest | RpcNotification | RpcResponse | RpcErrorResponse
DecodedRpc: TypeAlias = RpcMessage | MalformedFrame | NoiseLine | OversizedFrame


class _RpcEnvelope(msgspec.Struct, gc=False):
    id: RpcId | msgspec.UnsetType | None = msgspec.UNSET
    method: str | msgspec.UnsetType = msgspec.UNSET
    params: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


class _RpcError(msgspec.Struct, gc=False):
    code: int
    message: str = ""
    data: msgspec.Raw = msgspec.Raw()


_ENVELOPE: Final = msgspec.json.Decoder(_RpcEnvelope)
_BATCH: Final = msgspec.json.Decoder(list[msgspec.Raw])
_ERROR: Final = msgspec.json.Decoder(_RpcError)
_REFUSALS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_INTERNAL_ERROR: Final = -32603


def decode_rpc(line: Line) -> list[DecodedRpc]:
    """Decode a line: one message, or those of a batch in their order."""
    if isinstance(line, OversizedFrame):
        return [line]
    try:
        return [_message(_ENVELOPE.decode(line), line)]
    except _REFUSALS:
        pass
    frame = strip_wrapping(line)
    if frame is None:
        return [NoiseLine(line)]
    return _decode_batch(frame) if frame.startswith(b"[") else [_decode_one(frame)]


def _decode_batch(frame: bytes) -> list[DecodedRpc]:
    members = _read(_BATCH, frame)
    if isinstance(members, MalformedFrame):
        return [members]
    if not members:
        return [MalformedFrame(frame, "an empty batch")]
    return [_decode_one(bytes(member)) for member in members]


def _decode_one(frame: bytes) -> RpcMessage | MalformedFrame:
    envelope = _read(_ENVELOPE, frame)
    return envelope if isinstance(envelope, MalformedFrame) else _message(envelope, frame)


def _read(decoder: msgspec.json.Decoder[T], frame: bytes) -> T | MalformedFrame:
    try:
        return decoder.decode(frame)
    except _REFUSALS as refusal:
        why = str(refusal)
    # Bad UTF-8, half a surrogate pair or NaN: encode what the lenient parser understands.
    value = parse_json(frame)
    if isinstance(value, UnreadableJson):
        return MalformedFrame(frame, why)
    try:
        return decoder.decode(encode_json(value))
    except _REFUSALS as refusal:
        return MalformedFrame(frame, str(refusal))


def _message(envelope: _RpcEnvelope, frame: bytes) -> RpcMessage | MalformedFrame:
    if envelope.method is not msgspec.UNSET:
        params = bytes(envelope.params)
        if envelope.id is msgspec.UNSET:
            return RpcNotification(envelope.method, params)
        return RpcRequest(envelope.id, envelope.method, params)
    id_ = None if envelope.id is msgspec.UNSET else envelope.id
    error = bytes(envelope.error)
    if error not in (b"", b"null"):
        return _error_response(id_, error)
    result = bytes(envelope.result)
    if not result:
        return MalformedFrame(frame, "no method, result or error")
    return RpcResponse(id_, result)


def _error_response(id_: RpcId | None, error: bytes) -> RpcErrorResponse:
    try:
        known = _ERROR.decode(error)
    except _REFUSALS:
        return RpcErrorResponse(id_, None, "an error of unknown form", error)
    return RpcErrorResponse(id_, known.code, known.message, bytes(known.data))


def encode_rpc(message: RpcMessage, *, version: bool = True) -> bytes:
    """Encode a message as one line with its newline; Codex expects no version."""
    members: dict[str, bytes] = {"jsonrpc": b'"2.0"'} if version else {}
    match message:
        case RpcRequest(id=id_, method=method, params=params):
            members |= {"id": encode_json(id_), "method": encode_json(method), "params": params}
        case RpcNotification(method=method, params=params):
            members |= {"method": encode_json(method), "params": params}
        case RpcResponse(id=id_, result=result):
            members |= {"id": encode_json(id_), "result": result}
        case RpcErrorResponse(id=id_, code=code, message=text, data=data):
            known = encode_json(_INTERNAL_ERROR if code is None else code)
            error = _object({"code": known, "message": encode_json(text), "data": data})
            members |= {"id": encode_json(id_), "error": error}
    return _object(members) + b"\n"


def _object(members: dict[str, bytes]) -> bytes:
    texts = (b'"%b":%b' % (name.encode(), json) for name, json in members.items() if json)
    # A bare newline in JSON is white space between tokens, never part of a text.
    return (b"{" + b",".join(texts) + b"}").replace(b"\n", b" ").replace(b"\r", b" ")
