"""The system prompts of threads: Codex accepts one when a thread starts, and ignores later ones.

The adapter remembers the prompts of the threads of this process. For other threads it reads
Codex's own record of the thread, as far as that is readable.
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
    """The digest of the last system prompt of each thread."""

    def is_current(self, thread: str, text: str) -> bool:
        """Whether a text is known to be the last system prompt of a thread."""
        return self.get(thread) == _digest(text)

    def note(self, thread: str, text: str | None, *, before: str | None = None) -> None:
        """Record a thread's system prompt; without a text, it is that of the thread `before`."""
        if before is None or text is not None:
            self[thread] = None if text is None else _digest(text)
        elif before in self:
            self[thread] = self[before]


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="replace")).digest()


async def is_recorded(home: Path, thread: str, text: str) -> bool:
    """Whether Codex's record of a thread has this system prompt, and no later one."""
    return await trio.to_thread.run_sync(_is_recorded, home, thread, text)


def _is_recorded(home: Path, thread: str, text: str) -> bool:
    try:
        for file in (home / "sessions").rglob(f"rollout-*-{thread}.jsonl"):
            with file.open("rb") as lines:
                return is_last_system_prompt(lines, text)
    except OSError:
        pass  # an unreadable record proves nothing
    return False


def is_last_system_prompt(lines: Iterable[bytes], text: str) -> bool:
    """Return whether a text is the last system prompt of a record."""
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
    """Return the parts of a developer message to the model."""
    try:
        item = json.decode(line, type=_RecordLine).payload
    except (MsgspecError, UnicodeDecodeError):
        return []  # a record of another kind
    return [each.text for each in item.content] if item.role == "developer" else []


def system_prompt_message(thread: str, text: str) -> dict[str, Json]:
    """Return the parameters that add a system prompt to a running thread."""
    content: Json = [{"type": "input_text", "text": text}]
    message: Json = {"type": "message", "role": "developer", "content": content}
    return {"threadId": thread, "items": [message]}
