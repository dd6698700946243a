"""Which system prompt a thread has: Codex takes one where a thread begins, and passes over others.

What was said is remembered of the threads of this process. Of another, Codex's own record of the
thread tells, as far as it can be read.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

import trio
from msgspec import MsgspecError, Struct, json

from sessionmgr_adapters.codex.bounded_dict import BoundedDict

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from sessionmgr.model import Json

_DEVELOPER: Final = b'"developer"'


class SystemPromptCache(BoundedDict[str, bytes | None]):
    """The digest of the system prompt that each thread was told last."""

    def is_current(self, thread: str, text: str) -> bool:
        """Whether it is known that a thread was told this last."""
        return self.get(thread) == _digest(text)

    def note(self, thread: str, text: str | None, *, before: str | None = None) -> None:
        """Note what a thread was told; with no text, what it was told as the one `before`."""
        if before is None or text is not None:
            self[thread] = None if text is None else _digest(text)
        elif before in self:
            self[thread] = self[before]


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="replace")).digest()


async def is_recorded(home: Path, thread: str, text: str) -> bool:
    """Say whether Codex's record of a thread has this system prompt, and none after it."""
    return await trio.to_thread.run_sync(_is_recorded, home, thread, text)


def _is_recorded(home: Path, thread: str, text: str) -> bool:
    try:
        for file in (home / "sessions").rglob(f"rollout-*-{thread}.jsonl"):
            with file.open("rb") as lines:
                return is_last_system_prompt(lines, text)
    except OSError:
        pass  # what cannot be read tells nothing, and so it is not known
    return False


def is_last_system_prompt(lines: Iterable[bytes], text: str) -> bool:
    """Return whether the last system prompt of a record is this."""
    stands = False
    for line in lines:
        parts = _developer_parts(line) if _DEVELOPER in line else []
        if text in parts:
            stands = True
        elif len(parts) == 1 and not parts[0].startswith("<"):  # Codex's own have a tag
            stands = False
    return stands


class _RecordPart(Struct):
    text: str = ""


class _RecordItem(Struct):
    role: str = ""
    content: list[_RecordPart] = []


class _RecordLine(Struct):
    payload: _RecordItem


def _developer_parts(line: bytes) -> list[str]:
    """Return the parts of a message to the model that is not the user's."""
    try:
        item = json.decode(line, type=_RecordLine).payload
    except (MsgspecError, UnicodeDecodeError):
        return []  # a record of something else
    return [each.text for each in item.content] if item.role == "developer" else []


def system_prompt_message(thread: str, text: str) -> dict[str, Json]:
    """Return what tells the model of a thread a system prompt after what it has heard."""
    content: Json = [{"type": "input_text", "text": text}]
    message: Json = {"type": "message", "role": "developer", "content": content}
    return {"threadId": thread, "items": [message]}
