"""The agents that are played, and the least that can be made of a line of theirs."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec

from benchmarks.shipped import transcript
from benchmarks.wire.measured_frame import in_a_file
from sessionmgr.model import Event, MessageReceived, MessageStreamed

Normalise: TypeAlias = Callable[[bytes], Event | None]


class TextDelta(msgspec.Struct, tag="text_delta", gc=False):
    text: str


class ThinkingDelta(msgspec.Struct, tag="thinking_delta", gc=False):
    thinking: str


class BlockDelta(msgspec.Struct, tag="content_block_delta", gc=False):
    delta: TextDelta | ThinkingDelta


class MessageStart(msgspec.Struct, tag="message_start", gc=False):
    pass


class BlockStart(msgspec.Struct, tag="content_block_start", gc=False):
    pass


class BlockStop(msgspec.Struct, tag="content_block_stop", gc=False):
    pass


class MessageDelta(msgspec.Struct, tag="message_delta", gc=False):
    pass


class MessageStop(msgspec.Struct, tag="message_stop", gc=False):
    pass


class StreamEvent(msgspec.Struct, tag="stream_event", gc=False):
    event: MessageStart | BlockStart | BlockDelta | BlockStop | MessageDelta | MessageStop
    session_id: str
    api_message_id: str


class TextBlock(msgspec.Struct, tag="text", gc=False):
    text: str


class Message(msgspec.Struct, gc=False):
    id: str
    content: list[TextBlock]


class Assistant(msgspec.Struct, tag="assistant", gc=False):
    message: Message
    session_id: str


class DeltaParams(msgspec.Struct, gc=False, rename="camel"):
    thread_id: str
    item_id: str
    delta: str


class Delta(msgspec.Struct, tag_field="method", tag="item/agentMessage/delta", gc=False):
    params: DeltaParams


class Item(msgspec.Struct, gc=False):
    id: str
    text: str


class ItemParams(msgspec.Struct, gc=False, rename="camel"):
    thread_id: str
    item: Item


class Started(msgspec.Struct, tag_field="method", tag="item/started", gc=False):
    pass


class Completed(msgspec.Struct, tag_field="method", tag="item/completed", gc=False):
    params: ItemParams


def _of_claude() -> Normalise:
    decode = msgspec.json.Decoder(StreamEvent | Assistant).decode

    def normalise(line: bytes) -> Event | None:
        frame = decode(line)
        if isinstance(frame, StreamEvent):
            event = frame.event
            if isinstance(event, BlockDelta) and isinstance(event.delta, TextDelta):
                return MessageStreamed(delta=event.delta.text, message_id=frame.api_message_id)
            return None
        message = frame.message
        return MessageReceived(content=message.content[0].text, message_id=message.id)

    return normalise


def _of_codex() -> Normalise:
    decode = msgspec.json.Decoder(Delta | Started | Completed).decode

    def normalise(line: bytes) -> Event | None:
        frame = decode(line)
        if isinstance(frame, Delta):
            return MessageStreamed(delta=frame.params.delta, message_id=frame.params.item_id)
        if isinstance(frame, Completed):
            item = frame.params.item
            return MessageReceived(content=item.text, message_id=item.id)
        return None

    return normalise


@dataclass(frozen=True, slots=True)
class Dialect:
    """An agent: how it streams a message, and the least that makes events of its lines."""

    name: str
    message: Callable[[int, Sequence[str]], Iterator[object]]
    normalise: Normalise

    def lines(self, pieces: int) -> Iterator[bytes]:
        """Return the lines of as many messages as have so many pieces of text."""
        encode = msgspec.json.encode
        for number, first in enumerate(range(0, pieces, transcript.PIECES)):
            texts = transcript.texts(first, min(transcript.PIECES, pieces - first))
            for frame in self.message(number, texts):
                yield encode(frame) + b"\n"

    def written(self, pieces: int) -> AbstractContextManager[str]:
        """Write these lines into a file and give its path."""
        return in_a_file(self.lines(pieces))


DIALECTS: Final = (
    Dialect("claude", transcript.claude, _of_claude()),
    Dialect("codex", transcript.codex, _of_codex()),
)
"""A contestant knows them by their number."""
