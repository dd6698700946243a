"""The measured frame: a piece of text as Claude streams it, and its event.

The structs are those of an adapter: the tag first, and only the used fields.
"""

import contextlib
import tempfile
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from sessionmgr.wire.lines import NoFrame

LENGTH: Final = 299
MEBI: Final = 1 << 20

SESSION: Final = "9480d611-136c-4184-9eb5-c9d8b47aa49a"
SHAPE: Final = (
    '{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":'
    '{"type":"text_delta","text":"TEXT"}},"session_id":"SESSION","parent_tool_use_id":null,'
    '"uuid":"0c105e80-17b6-4a33-aef4-53e539e71da0"}'
)


def line_of(text: str) -> bytes:
    """Return a frame with this text, and its newline."""
    return SHAPE.replace("TEXT", text).replace("SESSION", SESSION).encode() + b"\n"


LINE: Final = line_of("x" * (LENGTH + 1 - len(line_of(""))))


class MeasuredTextDelta(msgspec.Struct, tag="text_delta", gc=False):
    text: str


class MeasuredThinkingDelta(msgspec.Struct, tag="thinking_delta", gc=False):
    thinking: str


class MeasuredBlockDelta(msgspec.Struct, tag="content_block_delta", gc=False):
    delta: MeasuredTextDelta | MeasuredThinkingDelta


class MeasuredMessageStop(msgspec.Struct, tag="message_stop", gc=False):
    pass


class MeasuredStreamEvent(msgspec.Struct, tag="stream_event", gc=False):
    event: MeasuredBlockDelta | MeasuredMessageStop
    session_id: str


class MeasuredResult(msgspec.Struct, tag="result", gc=False):
    subtype: str
    session_id: str


Frame: TypeAlias = MeasuredStreamEvent | MeasuredResult


class ConsumerDelta(msgspec.Struct, frozen=True, gc=False):
    """The event of a frame, outside of the adapter."""

    session_id: str
    delta: str


class ConsumerReasoning(msgspec.Struct, frozen=True, gc=False):
    session_id: str
    delta: str


class ConsumerEnd(msgspec.Struct, frozen=True, gc=False):
    session_id: str


Event: TypeAlias = ConsumerDelta | ConsumerReasoning | ConsumerEnd


def normalise(frame: Frame | NoFrame) -> Event | None:
    """Return the event of a frame, or None if the frame has no event."""
    # Plain tests: class patterns of `match` take three times as long, more than the decoding.
    if isinstance(frame, MeasuredStreamEvent):
        event = frame.event
        if isinstance(event, MeasuredBlockDelta):
            delta = event.delta
            if isinstance(delta, MeasuredTextDelta):
                return ConsumerDelta(frame.session_id, delta.text)
            return ConsumerReasoning(frame.session_id, delta.thinking)
        return None
    return ConsumerEnd(frame.session_id) if isinstance(frame, MeasuredResult) else None


@contextlib.contextmanager
def write_lines(lines: int, line: bytes = LINE) -> Generator[str]:
    """Write a file of so many lines and yield its path, for a child to send through its pipe."""
    blocks = (line * min(1000, lines - begin) for begin in range(0, lines, 1000))
    with write_blocks(blocks) as path:
        yield path


@contextlib.contextmanager
def write_blocks(blocks: Iterable[bytes]) -> Generator[str]:
    """Write such lines to a file and yield its path."""
    with tempfile.TemporaryDirectory(prefix="sessionmgr-benchmark-") as directory:
        path = Path(directory, "lines.jsonl")
        with path.open("wb") as file:
            file.writelines(blocks)
        yield str(path)
