"""References from events to images; a blob without a reference can be removed."""

from __future__ import annotations

import re
from typing import Final

IMAGE: Final = "image_received"
"""The type of events that name an image."""

_BLOB: Final = re.compile(rb'"blob":"([0-9a-f]{64})"')


def image_blobs(body: bytes) -> set[str]:
    """Return the blobs that an event's record names."""
    return {sha.decode() for sha in _BLOB.findall(body)}
