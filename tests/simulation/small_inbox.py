"""How much may be on its way to the store: less than in earnest, so that it is filled for less."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from sessionmgr.manager import inbox

if TYPE_CHECKING:
    from collections.abc import Generator

ROOM: Final = 16 * 1024
LARGEST: Final = 3 * ROOM + 16 * 1024
"""Bytes of the largest batch that room allows: a number and an address come with each event, and
each who writes may go beyond the room once."""


@contextmanager
def small_inbox() -> Generator[None, None, None]:
    """Let adapters wait when so much is on its way."""
    before = inbox.ROOM
    # A constant for everybody else.
    setattr(inbox, "ROOM", ROOM)  # noqa: B010
    try:
        yield
    finally:
        setattr(inbox, "ROOM", before)  # noqa: B010
