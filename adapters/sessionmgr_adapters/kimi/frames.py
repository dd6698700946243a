"""Messages of Kimi's wire (version 1.10): JSON-RPC, one message per line, all ids strings.

The agent's messages are events and requests, whose `type` determines their `payload`; `normalise`
and `KimiRequestHandler` match those that they know. Of a request, `PeerRequest` has the type as its
method. The id of a call of ours has the call's number and method.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from sessionmgr.adapter.kit import PeerReply, PeerRequest, RpcAnswer, RpcCall, RpcOutgoing
from sessionmgr.model import Json, UnreadableJson, encode_json, parse_json
from sessionmgr.wire import (
    NoFrame,
    RpcErrorResponse,
    RpcNotification,
    RpcRequest,
    RpcResponse,
    UntypedFrame,
    decode_rpc,
    encode_rpc,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.wire import DecodedRpc, Line


class KimiEvent(msgspec.Struct, frozen=True):
    """Event of a turn."""

    type: str
    payload: dict[str, Json] = {}


KimiFrame: TypeAlias = KimiEvent | PeerRequest | RpcAnswer | NoFrame
_EVENT: Final = msgspec.json.Decoder(KimiEvent)


def decode_lines(lines: Sequence[Line]) -> list[KimiFrame]:
    """Return the frames of the lines of a read."""
    return [_frame(message) for line in lines for message in decode_rpc(line)]


def _frame(message: DecodedRpc) -> KimiFrame:
    raw, why = b"null", "unknown message"
    try:
        match message:
            case RpcNotification(method="event", params=raw):
                return _EVENT.decode(raw)
            case RpcRequest(id=str() as id_, method="request", params=raw):
                asked = _EVENT.decode(raw)
                return PeerRequest(id_, asked.type, asked.payload)
            case RpcResponse(id=str() as id_) | RpcErrorResponse(id=str() as id_):
                number, _, method = id_.partition(":")
                return RpcAnswer.to(RpcCall(int(number), method, {}), message)
            case RpcNotification(params=raw) | RpcRequest(params=raw) | RpcResponse(result=raw):
                pass
            case RpcErrorResponse(message=why):
                pass
            case _:
                return message
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        why = str(error)
    found = parse_json(raw or b"null")
    return UntypedFrame(None if isinstance(found, UnreadableJson) else found, why)


def encode_outgoing(message: RpcOutgoing) -> bytes:
    """Return a message as a line."""
    match message:
        case RpcCall(id=number, method=method, params=params):
            return encode_rpc(RpcRequest(f"{number}:{method}", method, encode_json(params)))
        case PeerReply():
            return encode_rpc(message.response)


def fields_of(answer: RpcAnswer) -> dict[str, Json]:
    """Return the result of a call; empty if it is not an object, or was refused."""
    found = parse_json(answer.result or b"{}")
    return found if isinstance(found, dict) else {}
