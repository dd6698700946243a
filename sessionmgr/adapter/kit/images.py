"""Images: reads and checks those of a prompt, and collects those of tool outputs as blobs."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import TYPE_CHECKING, Final

import msgspec
import trio

from sessionmgr.model import ImageReceived, Json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.model import Event

MEGABYTE: Final = 1024 * 1024
MAX_IMAGE_BYTES: Final = 20 * MEGABYTE
MAX_TOTAL_BYTES: Final = 50 * MEGABYTE
MAX_IMAGES: Final = 10
MAX_OUTPUT_IMAGE_BYTES: Final = 25 * MEGABYTE
"""Maximum size of an image in a tool output, in base64."""
MAX_OUTPUT_IMAGES: Final = 10
_BEGINNINGS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


class ImageRefusedError(Exception):
    """An image cannot be sent; the text says which, and why."""


class PromptImage(msgspec.Struct, frozen=True):
    """Image of a prompt, read and checked."""

    media_type: str
    data: bytes


async def read_images(paths: Sequence[str], cwd: str) -> list[PromptImage]:
    """Read the images of a prompt; relative paths start at `cwd`.

    Raises:
        ImageRefusedError: An image cannot be sent, or there are too many.
    """
    await trio.lowlevel.checkpoint()
    if len(paths) > MAX_IMAGES:
        raise ImageRefusedError(f"{len(paths)} images; at most {MAX_IMAGES} are allowed")
    images: list[PromptImage] = []
    total = 0
    for path in paths:
        data = await _read(trio.Path(cwd) / path)
        total += len(data)
        if total > MAX_TOTAL_BYTES:
            raise ImageRefusedError(
                f"the images are larger than {MAX_TOTAL_BYTES // MEGABYTE} MB in total"
            )
        media_type = image_media_type(data)
        if media_type is None:
            raise ImageRefusedError(f"{path} is not a PNG, JPEG, GIF or WebP image")
        images.append(PromptImage(media_type, data))
    return images


async def _read(path: trio.Path) -> bytes:
    try:
        size = (await path.stat()).st_size
        if size > MAX_IMAGE_BYTES:
            raise ImageRefusedError(f"{path} is larger than {MAX_IMAGE_BYTES // MEGABYTE} MB")
        return await path.read_bytes()
    except OSError as error:
        raise ImageRefusedError(f"{path} cannot be read: {error.strerror or error}") from None


def image_media_type(data: bytes) -> str | None:
    """Return the media type of an image by its first bytes, as its name may be wrong."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for head, kind in _BEGINNINGS if data.startswith(head)), None)


class ImageCollector:
    """Collector of the images in the tool outputs of one run: each once, up to a maximum number."""

    def __init__(self) -> None:
        self._seen: Final[set[str]] = set()
        self.blobs: Final[list[bytes]] = []
        """The images collected since the last `collect`."""

    def collect(self) -> list[bytes]:
        """Return and forget the images collected since the last call."""
        blobs = self.blobs[:]
        self.blobs.clear()
        return blobs

    def extract(self, output: Json) -> tuple[Json, list[Event]]:
        """Return a tool's output with each image replaced by its sha256, and the events."""
        if not isinstance(output, list):
            return output, []
        events: list[Event] = []
        return [self._replaced(each, events) for each in output], events

    def _replaced(self, block: Json, events: list[Event]) -> Json:
        match block:
            case {"type": "image_url", "image_url": {"url": str(url)}} if ";base64," in url:
                kind, _, text = url.removeprefix("data:").partition(";base64,")
                inner: Json = {"type": "base64", "media_type": kind, "data": text}
                return self._replaced({"type": "image", "source": inner}, events)
            case {"type": "image", "source": {"type": "base64", "data": str(text), **source}}:
                data, media_type = _decoded(text), str(source.get("media_type", ""))
                if data is None:
                    return {"type": "image", "blob": None}
                sha256 = hashlib.sha256(data).hexdigest()
                is_kept = sha256 in self._seen or len(self._seen) < MAX_OUTPUT_IMAGES
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
    if len(text) > MAX_OUTPUT_IMAGE_BYTES:
        return None
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
