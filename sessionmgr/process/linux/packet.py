"""Packets between owner and reaper: lists of fields, each with its length in front.

No field contains a NUL, because no part of a command can. Also used by the spawner.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Final

_HEADER: Final = 4


def pack(*fields: bytes) -> bytes:
    """Return the packet of some fields."""
    body = b"\0".join(fields)
    return len(body).to_bytes(_HEADER, "big") + body


class Unpacker:
    """Decoder that yields complete packets from received bytes."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[list[bytes]]:
        """Yield the fields of each packet that `data` completes."""
        self._held += data
        while len(self._held) >= _HEADER:
            end = _HEADER + int.from_bytes(self._held[:_HEADER], "big")
            if len(self._held) < end:
                return
            fields = bytes(self._held[_HEADER:end]).split(b"\0")
            del self._held[:end]
            yield fields
