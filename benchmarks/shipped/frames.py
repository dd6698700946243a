"""The dialects of the played agents, and the minimal decoding of their lines."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec

from benchmarks.shipped import transcript
from benchmarks.wire.measured_frame import write_blocks
from sessionmgr.model import Event, MessageReceived, MessageStreamed

Normalise: TypeAlias = Callable[[bytes], Event | None]


class BenchTextDelta(msgspec.Struct, tag="text_delta", gc=False):
    text: str


class BenchThinkingDelta(msgspec.Struct, tag="thinking_delta", gc=False):
    thinking: str


class BenchBlockDelta(msgspec.Struct, tag="content_block_delta", gc=False):
    delta: BenchTextDelta | BenchThinkingDelta


class BenchMessageStart(msgspec.Struct, tag="message_start", gc=False):
    pass


class BenchBlockStart(msgspec.Struct, tag="content_block_start", gc=False):
    pass


class BenchBlockStop(msgspec.Struct, tag="content_block_stop", gc=False):
    pass


class BenchMessageDelta(msgspec.Struct, tag="message_delta", gc=False):
    pass


class BenchMessageStop(msgspec.Struct, tag="message_stop", gc=False):
    pass


class BenchStreamEvent(msgspec.Struct, tag="stream_event", gc=False):
    event: (
        BenchMessageStart
        | BenchBlockStart
        | BenchBlockDelta
        | BenchBlockStop
        | BenchMessageDelta
        | BenchMessageStop
    )
    session_id: str
    api_message_id: str


class BenchTextBlock(msgspec.Struct, tag="text", gc=False):
    text: str


class BenchMessage(msgspec.Struct, gc=False):
    id: str
    content: list[BenchTextBlock]


class BenchAssistant(msgspec.Struct, tag="assistant", gc=False):
    message: BenchMessage
    session_id: str


class BenchDeltaParams(msgspec.Struct, gc=False, rename="camel"):
    thread_id: str
    item_id: str
    delta: str


class BenchDelta(msgspec.Struct, tag_field="method", tag="item/agentMessage/delta", gc=False):
    params: BenchDeltaParams


class BenchItem(msgspec.Struct, gc=False):
    id: str
    text: str


class BenchItemParams(msgspec.Struct, gc=False, rename="camel"):
    thread_id: str
    item: BenchItem


class BenchStarted(msgspec.Struct, tag_field="method", tag="item/started", gc=False):
    pass


class BenchCompleted(msgspec.Struct, tag_field="method", tag="item/completed", gc=False):
    params: BenchItemParams


def _of_claude() -> Normalise:
    decode = msgspec.json.Decoder(BenchStreamEvent | BenchAssistant).decode

    def normalise(line: bytes) -> Event | None:
        frame = decode(line)
        if isinstance(frame, BenchStreamEvent):
            event = frame.event
            if isinstance(event, BenchBlockDelta) and isinstance(event.delta, BenchTextDelta):
                return MessageStreamed(delta=event.delta.text, message_id=frame.api_message_id)
            return None
        message = frame.message
        return MessageReceived(content=message.content[0].text, message_id=message.id)

    return normalise


def _of_codex() -> Normalise:
    decode = msgspec.json.Decoder(BenchDelta | BenchStarted | BenchCompleted).decode

    def normalise(line: bytes) -> Event | None:
        frame = decode(line)
        if isinstance(frame, BenchDelta):
            return MessageStreamed(delta=frame.params.delta, message_id=frame.params.item_id)
        if isinstance(frame, BenchCompleted):
            item = frame.params.item
            return MessageReceived(content=item.text, message_id=item.id)
        return None

    return normalise


@dataclass(frozen=True, slots=True)
class BenchDialect:
    """An agent's dialect: its lines for a message, and the minimal conversion to events."""

    name: str
    message: Callable[[int, Sequence[str]], Iterator[object]]
    normalise: Normalise

    def lines(self, pieces: int) -> Iterator[bytes]:
        """Return the lines of the messages that contain so many pieces of text."""
        encode = msgspec.json.encode
        for number, first in enumerate(range(0, pieces, transcript.PIECES)):
            texts = transcript.texts(first, min(transcript.PIECES, pieces - first))
            for frame in self.message(number, texts):
                yield encode(frame) + b"\n"

    def write_lines(self, pieces: int) -> AbstractContextManager[str]:
        """Write these lines to a file and return its path."""
        return write_blocks(self.lines(pieces))


DIALECTS: Final = (
    BenchDialect("claude", transcript.claude, _of_claude()),
    BenchDialect("codex", transcript.codex, _of_codex()),
)
"""A contestant gets the number of its dialect."""
