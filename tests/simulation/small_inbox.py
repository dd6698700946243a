"""Small limit on the bytes queued for the store, so that a simulation reaches it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from sessionmgr.manager import inbox

if TYPE_CHECKING:
    from collections.abc import Generator

ROOM: Final = 16 * 1024
LARGEST: Final = 3 * ROOM + 16 * 1024
"""Maximum bytes of a batch under this limit: each event adds a number and an address, and each
writer may exceed the limit once.
"""


@contextmanager
def small_inbox() -> Generator[None, None, None]:
    """Make adapters wait at a small number of queued bytes."""
    before = inbox.ROOM
    # The constant is `Final` for all other code.
    setattr(inbox, "ROOM", ROOM)  # noqa: B010
    try:
        yield
    finally:
        setattr(inbox, "ROOM", before)  # noqa: B010
