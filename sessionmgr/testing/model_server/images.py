"""The images in a request, in the form of any API."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from sessionmgr.model import Json

_DATA_URL: Final = re.compile(r"data:([^;,]*)(?:;[^,]*)?,(.*)", re.DOTALL)


class RequestImage(msgspec.Struct, frozen=True):
    """An image: base64 data of a type; or a URL, and no type."""

    media_type: str
    data: str


def find_images(said: Json) -> Iterator[RequestImage]:
    """Yield the images in a conversation, in its order."""
    match said:
        case [*parts]:
            for part in parts:
                yield from find_images(part)
        case {"type": "base64", "media_type": str(kind), "data": str(data)} | {
            "inlineData": {"mimeType": str(kind), "data": str(data)}
        }:
            yield RequestImage(kind, data)
        case (
            {"type": "image_url", "image_url": {"url": str(url)}}
            | {"type": "input_image", "image_url": str(url)}
            | {"type": "url", "url": str(url)}
        ):
            found = _DATA_URL.fullmatch(url)
            yield RequestImage("", url) if found is None else RequestImage(*found.groups())
        case _:
            if isinstance(said, dict):
                for each in said.values():
                    yield from find_images(each)
