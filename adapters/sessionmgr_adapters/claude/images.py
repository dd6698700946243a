"""Images: those of a prompt, and those that tools show to the model."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import TYPE_CHECKING, Final

from sessionmgr.adapter.kit.images import MEGABYTE, read_images
from sessionmgr.model import ImageReceived, Json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.adapter.kit.images import ReadImage
    from sessionmgr.model import Event

LARGEST_OUT: Final = 25 * MEGABYTE
"""Of one that a tool shows, as the text that it comes as."""
MOST_OUT: Final = 10


async def blocks_of(prompt: str, paths: Sequence[str], cwd: str) -> Json:
    """Return the content of a prompt with images.

    Raises:
        ImageRefusedError: One of them is no image that can be sent, or they are too many.
    """
    images = await read_images(paths, cwd)
    if not images:
        return prompt
    return [{"type": "text", "text": prompt}, *map(_block, images)]


def _block(image: ReadImage) -> Json:
    encoded = base64.b64encode(image.data).decode()
    source: dict[str, Json] = {
        "type": "base64",
        "media_type": image.media_type,
        "data": encoded,
    }
    return {"type": "image", "source": source}


class ImageCollector:
    """The images that tools have shown in one run: each once, and not too many."""

    def __init__(self) -> None:
        self._seen: Final[set[str]] = set()
        self.blobs: Final[list[bytes]] = []
        """Those that nothing was done with yet."""

    def take(self) -> list[bytes]:
        """Return the images that were collected since this was called last."""
        blobs = self.blobs[:]
        self.blobs.clear()
        return blobs

    def extract(self, output: Json) -> tuple[Json, list[Event]]:
        """Return a tool's output with the sha256 of each image in its place, and the events."""
        if not isinstance(output, list):
            return output, []
        events: list[Event] = []
        return [self._replaced(each, events) for each in output], events

    def _replaced(self, block: Json, events: list[Event]) -> Json:
        match block:
            case {"type": "image", "source": {"type": "base64", "data": str(text), **source}}:
                data, media_type = _decoded(text), str(source.get("media_type", ""))
                if data is None:
                    return {"type": "image", "blob": None}
                sha256 = hashlib.sha256(data).hexdigest()
                is_kept = sha256 in self._seen or len(self._seen) < MOST_OUT
                if is_kept and sha256 not in self._seen:
                    self._seen.add(sha256)
                    self.blobs.append(data)
                    events.append(
                        ImageReceived(media_type=media_type, blob=sha256, bytes=len(data))
                    )
                return {
                    "type": "image",
                    "media_type": media_type,
                    "blob": sha256 if is_kept else None,
                }
            case _:
                return block


def _decoded(text: str) -> bytes | None:
    if len(text) > LARGEST_OUT:
        return None
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
