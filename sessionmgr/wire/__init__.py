"""Bytes to frames and back: lines, JSON-RPC, server-sent events. No I/O."""

from sessionmgr.wire.json_rpc import (
    DecodedRpc as DecodedRpc,
    RpcErrorResponse as RpcErrorResponse,
    RpcId as RpcId,
    RpcMessage as RpcMessage,
    RpcNotification as RpcNotification,
    RpcRequest as RpcRequest,
    RpcResponse as RpcResponse,
    decode_rpc as decode_rpc,
    encode_rpc as encode_rpc,
)
from sessionmgr.wire.lines import (
    Line as Line,
    LineDecoder as LineDecoder,
    NoFrame as NoFrame,
    UntypedFrame as UntypedFrame,
    decode_frames as decode_frames,
)
from sessionmgr.wire.noise import (
    MalformedFrame as MalformedFrame,
    NoiseLine as NoiseLine,
    strip_wrapping as strip_wrapping,
)
from sessionmgr.wire.oversized import LIMIT as LIMIT, OversizedFrame as OversizedFrame
from sessionmgr.wire.sse import (
    IncompleteEvent as IncompleteEvent,
    ServerEvent as ServerEvent,
    ServerEventDecoder as ServerEventDecoder,
)
from sessionmgr.wire.terminal_escapes import strip_escapes as strip_escapes

__all__ = [
    "LIMIT",
    "DecodedRpc",
    "IncompleteEvent",
    "Line",
    "LineDecoder",
    "MalformedFrame",
    "NoFrame",
    "NoiseLine",
    "OversizedFrame",
    "RpcErrorResponse",
    "RpcId",
    "RpcMessage",
    "RpcNotification",
    "RpcRequest",
    "RpcResponse",
    "ServerEvent",
    "ServerEventDecoder",
    "UntypedFrame",
    "decode_frames",
    "decode_rpc",
    "encode_rpc",
    "strip_escapes",
    "strip_wrapping",
]
