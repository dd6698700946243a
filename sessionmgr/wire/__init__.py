"""Bytes to frames and back: lines, JSON-RPC, server-sent events. No I/O."""

from sessionmgr.wire.json_rpc import (
    Decoded as Decoded,
    ErrorResponse as ErrorResponse,
    Id as Id,
    Message as Message,
    Notification as Notification,
    Request as Request,
    Response as Response,
)
from sessionmgr.wire.lines import (
    Line as Line,
    LineDecoder as LineDecoder,
    NoFrame as NoFrame,
    Untyped as Untyped,
    read_frames as read_frames,
)
from sessionmgr.wire.noise import (
    Malformed as Malformed,
    Noise as Noise,
    unwrapped as unwrapped,
)
from sessionmgr.wire.oversized import Oversized as Oversized
from sessionmgr.wire.sse import (
    EventDecoder as EventDecoder,
    ServerEvent as ServerEvent,
    Unfinished as Unfinished,
)

__all__ = [
    "Decoded",
    "ErrorResponse",
    "EventDecoder",
    "Id",
    "Line",
    "LineDecoder",
    "Malformed",
    "Message",
    "NoFrame",
    "Noise",
    "Notification",
    "Oversized",
    "Request",
    "Response",
    "ServerEvent",
    "Unfinished",
    "Untyped",
    "read_frames",
    "unwrapped",
]
