"""Gemini's files of sessions: whether a session that cannot be resumed has lost anything.

If the first turn of a session fails, Gemini takes it back, and refuses to resume the session.
Nothing is lost then by starting a new one.
"""

from __future__ import annotations

import glob
from typing import TYPE_CHECKING, Final

import trio

if TYPE_CHECKING:
    from pathlib import Path

_ANSWER: Final = b'"type":"gemini"'
"""What the file of a session contains if the model has answered; quotes in texts are escaped."""
_SHORT_ID: Final = 8
"""Characters of a session's id in the name of its file."""
_LARGEST: Final = 16 * 1024 * 1024


async def is_unanswered(home: Path | None, session: str) -> bool:
    """Whether Gemini has a file of this session, and the model has never answered in it."""
    if home is None:
        return False
    pattern = f"tmp/*/chats/session-*-{glob.escape(session[:_SHORT_ID])}.jsonl"
    named = f'"sessionId":"{session}"'.encode()
    for path in await trio.Path(home).glob(pattern):
        try:
            if (await path.stat()).st_size > _LARGEST:
                continue
            data = await path.read_bytes()
        except OSError:
            continue
        if named in data:
            return _ANSWER not in data
    return False
