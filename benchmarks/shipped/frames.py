"""A piece of text as each agent really streams it, and the least that can be made of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec

from benchmarks.shipped.player import SESSION, THREAD, TURN
from sessionmgr.model import Event, MessageStreamed

Normalise: TypeAlias = Callable[[bytes], Event | None]

TEXT: Final = "x" * 24
"""Its text: some words, as they come when a model is fast."""
CLAUDE_SHAPE: Final = (
    '{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":'
    f'{{"type":"text_delta","text":"{TEXT}"}}}},"session_id":"{SESSION}",'
    '"parent_tool_use_id":null,"uuid":"66b2bdde-05dd-4da3-8815-0e451b51276d",'
    '"api_message_id":"msg_c40b4d28_0_0"}\n'
)
CODEX_SHAPE: Final = (
    f'{{"method":"item/agentMessage/delta","params":{{"threadId":"{THREAD}","turnId":"{TURN}",'
    f'"itemId":"msg_e920962a_0_0_0","delta":"{TEXT}"}},"emittedAtMs":1795108923324}}\n'
)


class TextDelta(msgspec.Struct, tag="text_delta", gc=False):
    text: str


class ThinkingDelta(msgspec.Struct, tag="thinking_delta", gc=False):
    thinking: str


class BlockDelta(msgspec.Struct, tag="content_block_delta", gc=False):
    delta: TextDelta | ThinkingDelta


class MessageStop(msgspec.Struct, tag="message_stop", gc=False):
    pass


class StreamEvent(msgspec.Struct, tag="stream_event", gc=False):
    event: BlockDelta | MessageStop
    session_id: str
    api_message_id: str


class Params(msgspec.Struct, gc=False, rename="camel"):
    thread_id: str
    item_id: str
    delta: str


class Notice(msgspec.Struct, tag_field="method", tag="item/agentMessage/delta", gc=False):
    params: Params


def _of_claude() -> Normalise:
    decode = msgspec.json.Decoder(StreamEvent).decode

    def normalise(line: bytes) -> Event | None:
        frame = decode(line)
        event = frame.event
        if isinstance(event, BlockDelta) and isinstance(event.delta, TextDelta):
            return MessageStreamed(delta=event.delta.text, message_id=frame.api_message_id)
        return None

    return normalise


def _of_codex() -> Normalise:
    decode = msgspec.json.Decoder(Notice).decode

    def normalise(line: bytes) -> Event | None:
        params = decode(line).params
        return MessageStreamed(delta=params.delta, message_id=params.item_id)

    return normalise


@dataclass(frozen=True, slots=True)
class Dialect:
    """An agent's line, and the least that makes an event of it."""

    name: str
    line: bytes
    normalise: Normalise


DIALECTS: Final = (
    Dialect("claude", CLAUDE_SHAPE.encode(), _of_claude()),
    Dialect("codex", CODEX_SHAPE.encode(), _of_codex()),
)
"""A contestant knows them by their number."""
