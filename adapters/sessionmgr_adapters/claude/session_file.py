"""Reader of Claude Code's own record of a session: reports tool calls while stdout is silent.

Only tool calls and their results are read, each once, whether stdout reports it before or after.
Texts are not, because they have no id that identifies them. Lines older than the run belong to
earlier runs, or were copied for a fork.
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
"""Seconds of silence before the file is read, and between two reads of it."""
LONGEST: Final = 200
"""Maximum length of a directory name; a longer one is truncated, and an unknown suffix is added."""
_A_PROMPT: Final = b'"type":"user"'
_NOT_IN_A_NAME: Final = re.compile("[^a-zA-Z0-9]")


class SessionFileEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Line of the record."""

    type: str = ""
    timestamp: str = ""
    is_sidechain: bool = False


def session_path(session: str, cwd: str, env: Mapping[str, str]) -> Path | None:
    """Return the path of a session's record; None if it cannot be determined."""
    home = env.get("CLAUDE_CONFIG_DIR") or (f"{env['HOME']}/.claude" if "HOME" in env else None)
    if home is None:
        return None
    return Path(
        home, "projects", _NOT_IN_A_NAME.sub("-", os.path.realpath(cwd)), f"{session}.jsonl"
    )


def _find_directory(path: Path) -> Path:
    """Return the actual path of a record: long directory names are truncated."""
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
    """Whether a session can be resumed: its first prompt is on disk.

    A process that is killed in its first turn may have written nothing yet.
    """
    if path is None or not _find_directory(path).exists():  # this needs no thread
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
    """Record of a session, read from its present end."""

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
