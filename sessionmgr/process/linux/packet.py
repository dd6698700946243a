"""How owner and guard talk: packets of fields, a length before each.

No field holds a NUL, as nothing in a command can. Runs in the warden too.
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
    """Is fed what came, yields the packets that are whole."""

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
