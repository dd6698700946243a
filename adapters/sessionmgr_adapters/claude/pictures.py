"""Images: those that go with a prompt, and those that tools show to the model."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.adapter.kit.images import MEGABYTE, read_images
from sessionmgr.model import Json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.adapter.kit.images import ReadImage

LARGEST_OUT: Final = 25 * MEGABYTE
"""Of one that a tool shows, as the text that it comes as."""
MOST_OUT: Final = 10


class Picture(msgspec.Struct, frozen=True):
    """An image that a tool has shown."""

    media_type: str
    data: bytes
    sha256: str


async def blocks_of(prompt: str, paths: Sequence[str], cwd: str) -> Json:
    """Return what is sent for a prompt that goes with images.

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


class Gallery:
    """The images that tools have shown in one run: each once, and not too many."""

    def __init__(self) -> None:
        self.fresh: Final[list[Picture]] = []
        """Those that nobody has put anywhere yet."""
        self._seen: Final[set[str]] = set()

    def hang(self, output: Json) -> Json:
        """Take the images out of what a tool gave back; their names stay in their places."""
        if not isinstance(output, list):
            return output
        return [self._replaced(each) for each in output]

    def _replaced(self, block: Json) -> Json:
        match block:
            case {"type": "image", "source": {"type": "base64", "data": str(data), **source}}:
                picture = _decoded(str(source.get("media_type", "")), data)
                if picture is None:
                    return {"type": "image", "blob": None}
                return {
                    "type": "image",
                    "media_type": picture.media_type,
                    "blob": picture.sha256 if self._takes(picture) else None,
                }
            case _:
                return block

    def _takes(self, picture: Picture) -> bool:
        """Whether a picture is put somewhere, now or before."""
        if picture.sha256 in self._seen:
            return True
        if len(self._seen) >= MOST_OUT:
            return False
        self._seen.add(picture.sha256)
        self.fresh.append(picture)
        return True


def _decoded(media_type: str, data: str) -> Picture | None:
    if len(data) > LARGEST_OUT:
        return None
    try:
        found = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
    return Picture(media_type, found, hashlib.sha256(found).hexdigest())
