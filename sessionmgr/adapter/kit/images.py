"""The images that go with a prompt: read, known for what they are, and not too many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import trio

if TYPE_CHECKING:
    from collections.abc import Sequence

MEGABYTE: Final = 1024 * 1024
LARGEST: Final = 20 * MEGABYTE
ALL: Final = 50 * MEGABYTE
MOST: Final = 10
_BEGINNINGS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


class ImageRefusedError(Exception):
    """An image cannot be sent; the text says which, and why."""


class ReadImage(msgspec.Struct, frozen=True):
    """An image that can be sent."""

    media_type: str
    data: bytes


async def read_images(paths: Sequence[str], cwd: str) -> list[ReadImage]:
    """Read the images of a prompt, named as seen from `cwd`.

    Raises:
        ImageRefusedError: One of them is no image that can be sent, or they are too many.
    """
    await trio.lowlevel.checkpoint()
    if len(paths) > MOST:
        raise ImageRefusedError(f"{len(paths)} images: {MOST} is the most")
    images: list[ReadImage] = []
    total = 0
    for path in paths:
        data = await _read(trio.Path(cwd) / path)
        total += len(data)
        if total > ALL:
            raise ImageRefusedError(f"the images have more than {ALL // MEGABYTE} MB in all")
        media_type = media_type_of(data)
        if media_type is None:
            raise ImageRefusedError(f"{path} is no PNG, JPEG, GIF or WebP")
        images.append(ReadImage(media_type, data))
    return images


async def _read(path: trio.Path) -> bytes:
    try:
        size = (await path.stat()).st_size
        if size > LARGEST:
            raise ImageRefusedError(f"{path} has more than {LARGEST // MEGABYTE} MB")
        return await path.read_bytes()
    except OSError as error:
        raise ImageRefusedError(f"{path} cannot be read: {error.strerror or error}") from None


def media_type_of(data: bytes) -> str | None:
    """Return which kind of image this is, by its first bytes; its name may lie."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for head, kind in _BEGINNINGS if data.startswith(head)), None)
