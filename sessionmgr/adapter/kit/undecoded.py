"""Events for lines of output that could not be decoded to a frame of a known type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessionmgr.model import (
    ErrorOccurred,
    Failure,
    FailureKind,
    OutputReceived,
    RawReceived,
)
from sessionmgr.wire import MalformedFrame, NoiseLine, UntypedFrame

if TYPE_CHECKING:
    from sessionmgr.model import Event
    from sessionmgr.wire import NoFrame

SHOWN = 200
"""Maximum number of bytes of a malformed line in a message."""


def undecoded_event(line: NoFrame) -> Event:
    """Return the event that reports a line that is not a known frame."""
    match line:
        case UntypedFrame(value=value):
            return RawReceived(frame=value)
        case NoiseLine(line=text):
            return OutputReceived(stream="stdout", text=text.decode(errors="replace"))
        case MalformedFrame(line=text, why=why):
            return _protocol_error(f"malformed frame ({why}): {_shown(text)}")
        case _:
            head = _shown(line.head)
            return _protocol_error(f"skipped a frame of {line.bytes_seen} bytes: {head}…")


def _protocol_error(message: str) -> ErrorOccurred:
    failure = Failure(kind=FailureKind.PROTOCOL_ERROR, message=message, phase="turn")
    return ErrorOccurred(failure=failure, severity="warning")


def _shown(line: bytes) -> str:
    return line[:SHOWN].decode(errors="replace")
