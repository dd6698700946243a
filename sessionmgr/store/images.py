"""Images that events name: the blobs that go when the last of these events does."""

from __future__ import annotations

import re
from typing import Final

IMAGE: Final = "image_received"
"""The type of the events that name one."""

_BLOB: Final = re.compile(rb'"blob":"([0-9a-f]{64})"')


def named_in(body: bytes) -> set[str]:
    """Return the blobs that the record of an event names."""
    return {sha.decode() for sha in _BLOB.findall(body)}
