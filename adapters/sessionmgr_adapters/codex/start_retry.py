"""Starts of Codex that come to nothing because another one was just making the same home.

Its databases are made by whoever is there first, and some versions give up when somebody else is
at it: as a whole, or on a thread that is begun or gone on with. Nothing has been asked then, and
the next time finds all of it made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.adapter.kit.json_rpc_peer import BUSY
from sessionmgr.model import ErrorOccurred, Failure, FailureKind

if TYPE_CHECKING:
    from sessionmgr.adapter.kit.json_rpc_caller import Refusal

TRIES: Final = 5
PAUSE: Final = 0.1
_WORDS: Final = (
    ("failed to initialize", "state runtime"),
    ("failed to migrate", "DB"),
    ("database is locked",),
    ("thread history projection", "is behind"),
)
_AGAIN: Final = ("is closing", "already has an active writer")


def is_half_made(complaint: str) -> bool:
    """Whether Codex complains of a home that somebody else is making."""
    return any(all(each in complaint for each in words) for words in _WORDS)


def is_passing(refusal: Refusal) -> bool:
    """Whether a call was refused only for the moment."""
    if refusal.code == BUSY or is_half_made(refusal.message):
        return True
    return any(each in refusal.message for each in _AGAIN)


def has_lost(stderr: str, tries: int) -> bool:
    """Whether that is what it died of, and it makes sense to start it again."""
    return tries < TRIES and is_half_made(stderr)


def notice(tries: int) -> ErrorOccurred:
    """Return what is told of a start that is made again."""
    message = f"Codex found its home half made, and is started again ({tries}/{TRIES - 1})"
    failure = Failure(kind=FailureKind.START_FAILED, message=message, retryable=True, phase="start")
    return ErrorOccurred(failure=failure, severity="warning")


async def wait(tries: int) -> None:
    """Let others come to an end with it."""
    await trio.sleep(PAUSE * 2 ** (tries - 1))
