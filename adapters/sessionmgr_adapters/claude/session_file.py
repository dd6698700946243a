"""Claude Code's own record of a session, followed as it grows: tool calls, while stdout is silent.

Only tool calls and their results are taken from it, each once, whether stdout reports it before or
after; texts are not, because they have no id by which to recognize them. Lines that are older than
the run belong to runs before it, or were copied for a fork.
"""

from __future__ import annotations

import os
import re
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import trio

from sessionmgr.adapter.kit import MEGABYTE, GrowingFile
from sessionmgr.model import format_timestamp
from sessionmgr_adapters.claude.frames import (
    AssistantFrame,
    ToolResult,
    ToolUse,
    UserFrame,
    decode_lines,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sessionmgr.wire import Line, NoFrame
    from sessionmgr_adapters.claude.frames import ClaudeFrame

SILENCE: Final = 5.0
"""Seconds without a word after which the file is looked at, and how often then."""
LONGEST: Final = 200
"""Of the name of a directory; a longer one is shortened, and something added that is not known."""
_A_PROMPT: Final = b'"type":"user"'
_NOT_IN_A_NAME: Final = re.compile("[^a-zA-Z0-9]")


class SessionFileEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a line says of itself."""

    type: str = ""
    timestamp: str = ""
    is_sidechain: bool = False


def session_path(session: str, cwd: str, env: Mapping[str, str]) -> Path | None:
    """Return where a session is written down; None if that cannot be known."""
    home = env.get("CLAUDE_CONFIG_DIR") or (f"{env['HOME']}/.claude" if "HOME" in env else None)
    if home is None:
        return None
    return Path(
        home, "projects", _NOT_IN_A_NAME.sub("-", os.path.realpath(cwd)), f"{session}.jsonl"
    )


def _find_directory(path: Path) -> Path:
    """Return where a record is in truth: the names of directories are shortened that are long."""
    named = path.parent.name
    if len(named) <= LONGEST:
        return path
    try:
        alike = [
            each / path.name
            for each in path.parent.parent.iterdir()
            if each.name.startswith(named[: LONGEST // 2])
        ]
    except OSError:
        return path
    return next((each for each in alike if each.exists()), path)


async def is_session_stored(path: Path | None) -> bool:
    """Whether a session can be gone on with: what was asked first is on disk.

    One that is killed in its first turn may have written nothing yet.
    """
    if path is None or not _find_directory(path).exists():  # that takes no thread
        await trio.lowlevel.checkpoint()
        return False
    return await trio.to_thread.run_sync(_has_prompt, path)


def _has_prompt(path: Path) -> bool:
    try:
        with _find_directory(path).open("rb") as file:
            return _A_PROMPT in file.read(MEGABYTE)
    except OSError:
        return False


class SessionFile(GrowingFile["AssistantFrame | UserFrame"]):
    """A session's record, from its present end on."""

    def __init__(self, path: Path) -> None:
        super().__init__(partial(_find_directory, path), self._tool_entries)
        self._since: Final = format_timestamp(time.time())

    def _tool_entries(self, lines: Sequence[Line]) -> Iterator[AssistantFrame | UserFrame]:
        fresh = [line for line in lines if isinstance(line, bytes) and self._is_fresh(line)]
        for frame in decode_lines(fresh):
            about_tools = _tool_blocks_only(frame)
            if about_tools is not None:
                yield about_tools

    def _is_fresh(self, line: bytes) -> bool:
        try:
            entry = msgspec.json.decode(line, type=SessionFileEntry)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return False
        is_message = entry.type in {"assistant", "user"} and not entry.is_sidechain
        return is_message and entry.timestamp >= self._since


def _tool_blocks_only(frame: ClaudeFrame | NoFrame) -> AssistantFrame | UserFrame | None:
    if not isinstance(frame, AssistantFrame | UserFrame) or isinstance(frame.message.content, str):
        return None
    kept = [block for block in frame.message.content if isinstance(block, ToolUse | ToolResult)]
    message = msgspec.structs.replace(frame.message, content=kept, usage=None)
    return msgspec.structs.replace(frame, message=message) if kept else None
