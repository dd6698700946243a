"""Images: those that go with a prompt, and those that tools show to the model."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import TYPE_CHECKING, Final

import msgspec
import trio

from sessionmgr.model import Json

if TYPE_CHECKING:
    from collections.abc import Sequence

MEGABYTE: Final = 1024 * 1024
LARGEST: Final = 20 * MEGABYTE
ALL: Final = 50 * MEGABYTE
MOST: Final = 10
LARGEST_OUT: Final = 25 * MEGABYTE
"""Of one that a tool shows, as the text that it comes as."""
MOST_OUT: Final = 10
_BEGINNINGS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


class ImageRefusedError(Exception):
    """An image cannot be sent; the text says which, and why."""


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
    await trio.lowlevel.checkpoint()
    if not paths:
        return prompt
    if len(paths) > MOST:
        raise ImageRefusedError(f"{len(paths)} images: {MOST} is the most")
    blocks: list[Json] = [{"type": "text", "text": prompt}]
    total = 0
    for path in paths:
        data = await _read(trio.Path(cwd) / path)
        total += len(data)
        if total > ALL:
            raise ImageRefusedError(f"the images have more than {ALL // MEGABYTE} MB in all")
        blocks.append(_block(path, data))
    return blocks


async def _read(path: trio.Path) -> bytes:
    try:
        size = (await path.stat()).st_size
        if size > LARGEST:
            raise ImageRefusedError(f"{path} has more than {LARGEST // MEGABYTE} MB")
        return await path.read_bytes()
    except OSError as error:
        raise ImageRefusedError(f"{path} cannot be read: {error.strerror or error}") from None


def _block(path: str, data: bytes) -> Json:
    media_type = media_type_of(data)
    if media_type is None:
        raise ImageRefusedError(f"{path} is no PNG, JPEG, GIF or WebP")
    encoded = base64.b64encode(data).decode()
    source: dict[str, Json] = {"type": "base64", "media_type": media_type, "data": encoded}
    return {"type": "image", "source": source}


def media_type_of(data: bytes) -> str | None:
    """Return which kind of image this is, by its first bytes; its name may lie."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for head, kind in _BEGINNINGS if data.startswith(head)), None)


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
                if picture.sha256 not in self._seen and len(self._seen) < MOST_OUT:
                    self._seen.add(picture.sha256)
                    self.fresh.append(picture)
                return {
                    "type": "image",
                    "media_type": picture.media_type,
                    "blob": picture.sha256,
                }
            case _:
                return block


def _decoded(media_type: str, data: str) -> Picture | None:
    if len(data) > LARGEST_OUT:
        return None
    try:
        found = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
    return Picture(media_type, found, hashlib.sha256(found).hexdigest())
