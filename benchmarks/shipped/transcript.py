"""Generated output of agents: whole messages, line by line.

The shapes are those of Claude Code 2.1.327 and of the app-server of Codex 0.169.0; the text is
invented. Each line differs from all others, because names, text and timestamps do.
"""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Final
from uuid import UUID

from benchmarks.shipped.player import SESSION, THREAD, TURN

PIECES: Final = 300
"""Pieces per message: a long text of about 4,000 characters."""
TEXTS: Final = (
    *("The parser ", "reads one header ", "at a time, ", "and keeps the rest of the line "),
    *("until the next read. ", "A test ", "of the empty file ", 'says "no header", '),
    *("which is what\nthe manual promises.\n\n", "Next come ", "the two slow queries."),
)
"""Pieces in the order and the sizes in which a fast model streams them."""
TIMESTAMP: Final = 1_795_108_923_324
USAGE: Final = {
    "input_tokens": 2543,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "output_tokens": 1,
}
STOP: Final = {"stop_reason": None, "stop_sequence": None}


def texts(first: int, count: int) -> list[str]:
    """Return so many pieces of text, starting with the given number."""
    return [TEXTS[number % len(TEXTS)] for number in range(first, first + count)]


def claude(number: int, pieces: Sequence[str]) -> Iterator[object]:
    """Return the frames with which Claude Code streams a message."""
    name, random = f"msg_{number:08x}_0_0", Random(number)  # identifiers only
    content = [{"type": "text", "text": "".join(pieces)}]
    message = {
        "id": name,
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-5-5",
        "content": content,
        **STOP,
        "usage": USAGE,
    }

    def frame(kind: str, **fields: object) -> dict[str, object]:
        return {
            "type": kind,
            **fields,
            "session_id": SESSION,
            "parent_tool_use_id": None,
            "uuid": str(UUID(int=random.getrandbits(128), version=4)),
        }

    def streamed(kind: str, **fields: object) -> dict[str, object]:
        return {**frame("stream_event", event={"type": kind, **fields}), "api_message_id": name}

    yield streamed("message_start", message={**message, "content": []})
    yield streamed("content_block_start", index=0, content_block={"type": "text", "text": ""})
    for piece in pieces:
        delta = {"type": "text_delta", "text": piece}
        yield streamed("content_block_delta", index=0, delta=delta)
    yield frame("assistant", message={**message, "context_management": None})
    yield streamed("content_block_stop", index=0)
    end = {"stop_reason": "end_turn", "stop_sequence": None}
    yield streamed("message_delta", delta=end, usage={**USAGE, "output_tokens": len(pieces)})
    yield streamed("message_stop")


def codex(number: int, pieces: Sequence[str]) -> Iterator[object]:
    """Return the notifications with which the app-server of Codex streams a message."""
    name, begun = f"msg_{number:08x}_0_0_0", TIMESTAMP + number * 600
    here = {"threadId": THREAD, "turnId": TURN}

    def item(text: str, completed: int | None) -> dict[str, object]:
        return {
            "type": "agentMessage",
            "moderation": None,
            "id": name,
            "text": text,
            "phase": None,
            "memoryCitation": None,
            "delivery": None,
            "questions": None,
            "startedAtMs": begun,
            "completedAtMs": completed,
        }

    def notice(method: str, at: int, **params: object) -> dict[str, object]:
        return {"method": method, "params": params, "emittedAtMs": at}

    yield notice("item/started", begun, item=item("", None), **here, startedAtMs=begun)
    at = begun
    for at, piece in enumerate(pieces, begun):
        yield notice("item/agentMessage/delta", at, **here, itemId=name, delta=piece)
    whole = item("".join(pieces), at)
    more = {"contentTokenCount": None, "completedAtMs": at}
    yield notice("item/completed", at, item=whole, **here, **more)
