"""Placeholder for a frame that exceeded its limit."""

from __future__ import annotations

from typing import Final

import msgspec

LIMIT: Final = 64 * 1024 * 1024
"""Default limit of a frame in bytes."""
HEAD: Final = 1024
"""Number of bytes kept of an oversized frame, so that a reader can identify it."""


class OversizedFrame(msgspec.Struct, frozen=True):
    """A frame that was skipped to its end, in its place in the stream."""

    bytes_seen: int
    """Its length without the terminator."""
    head: bytes
    """Its first bytes."""
