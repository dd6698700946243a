"""The lower rungs of decoding: JSON that msgspec refuses and that can be read all the same.

Lone surrogates and bad UTF-8 become U+FFFD; NaN and the infinities become null.
"""

from __future__ import annotations

import json

import msgspec


def repaired(frame: bytes) -> bytes | None:
    """Return the frame as JSON that everybody can read, or None if it is not JSON at all."""
    try:
        value: object = json.loads(frame.decode(errors="replace"))
        text = json.dumps(value, ensure_ascii=False)
        clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return msgspec.json.encode(json.loads(clean))
    except (ValueError, OverflowError, RecursionError, msgspec.EncodeError):
        return None
