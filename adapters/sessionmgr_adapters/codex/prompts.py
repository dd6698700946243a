"""Which system prompt a thread has: Codex takes one where a thread begins, and passes over others.

What was said is remembered of the threads of this process. Of another, Codex's own record of the
thread tells, as far as it can be read.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import trio
from msgspec import MsgspecError, Struct, json

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from sessionmgr.model import Json

KEPT: Final = 4096
"""Threads of which it is remembered."""
_DEVELOPER: Final = b'"developer"'


class Prompts:
    """The system prompt that each thread was told last."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept: Final = kept
        self._told: Final = OrderedDict[str, bytes | None]()

    def __contains__(self, thread: str) -> bool:
        """Whether it is known of a thread."""
        return thread in self._told

    def has(self, thread: str, text: str) -> bool:
        """Whether it is known that a thread was told this last."""
        return self._told.get(thread) == _digest(text)

    def note(self, thread: str, text: str | None) -> None:
        """Note what a thread was told."""
        self._keep(thread, None if text is None else _digest(text))

    def fork(self, thread: str, new: str) -> None:
        """Note that a thread goes on in a new one."""
        if thread in self._told:
            self._keep(new, self._told[thread])

    def _keep(self, thread: str, told: bytes | None) -> None:
        self._told.pop(thread, None)
        self._told[thread] = told
        while len(self._told) > self._kept:
            self._told.popitem(last=False)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="replace")).digest()


async def is_recorded(home: Path, thread: str, text: str) -> bool:
    """Say whether Codex's record of a thread has this system prompt, and none after it."""
    return await trio.to_thread.run_sync(_is_recorded, home, thread, text)


def _is_recorded(home: Path, thread: str, text: str) -> bool:
    try:
        for file in (home / "sessions").rglob(f"rollout-*-{thread}.jsonl"):
            with file.open("rb") as lines:
                return stands_in(lines, text)
    except OSError:
        pass  # what cannot be read tells nothing, and so it is not known
    return False


def stands_in(lines: Iterable[bytes], text: str) -> bool:
    """Return whether the last system prompt of a record is this."""
    stands = False
    for line in lines:
        parts = _developers(line) if _DEVELOPER in line else []
        if text in parts:
            stands = True
        elif len(parts) == 1 and not parts[0].startswith("<"):  # Codex's own have a tag
            stands = False
    return stands


class _Part(Struct):
    text: str = ""


class _Item(Struct):
    role: str = ""
    content: list[_Part] = []


class _Line(Struct):
    payload: _Item


def _developers(line: bytes) -> list[str]:
    """Return the parts of a message to the model that is not the user's."""
    try:
        item = json.decode(line, type=_Line).payload
    except (MsgspecError, UnicodeDecodeError):
        return []  # a record of something else
    return [each.text for each in item.content] if item.role == "developer" else []


def said_anew(thread: str, text: str) -> dict[str, Json]:
    """Return what tells the model of a thread a system prompt after what it has heard."""
    content: Json = [{"type": "input_text", "text": text}]
    message: Json = {"type": "message", "role": "developer", "content": content}
    return {"threadId": thread, "items": [message]}
