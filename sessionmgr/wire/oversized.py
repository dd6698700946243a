"""What is left of a frame that grew past its limit."""

from __future__ import annotations

from typing import Final

import msgspec

LIMIT: Final = 64 * 1024 * 1024
"""How long a frame may be unless its decoder is told otherwise."""
HEAD: Final = 1024
"""How much of an oversized frame is kept, so that one can tell what it was."""


class OversizedFrame(msgspec.Struct, frozen=True):
    """A frame that was skipped to its end, in the place where it would have stood."""

    bytes_seen: int
    """How long it was, without what terminated it."""
    head: bytes
    """How it began."""
