"""Images of prompts and of tool outputs."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest

from sessionmgr.adapter.kit.images import (
    MAX_IMAGE_BYTES,
    MAX_IMAGES,
    MAX_OUTPUT_IMAGE_BYTES,
    ImageCollector,
    ImageRefusedError,
    image_media_type,
)
from sessionmgr.model import ImageReceived, Json
from sessionmgr_adapters.claude.outgoing import content_blocks

PNG = b"\x89PNG\r\n\x1a\n and more"


async def test_images_are_recognized_by_their_contents(tmp_path: Path) -> None:
    assert image_media_type(PNG) == "image/png"
    assert image_media_type(b"\xff\xd8\xff\xe0") == "image/jpeg"
    assert image_media_type(b"GIF89a") == "image/gif"
    assert image_media_type(b"RIFF\0\0\0\0WEBPVP8 ") == "image/webp"
    assert image_media_type(b"<svg>") is None
    (tmp_path / "a").write_bytes(PNG)
    blocks = await content_blocks("look", ["a"], str(tmp_path))
    assert base64.b64encode(PNG).decode() in str(blocks)
    assert await content_blocks("look", [], str(tmp_path)) == "look"
    with (tmp_path / "large").open("wb") as file:
        file.write(PNG)
        file.truncate(MAX_IMAGE_BYTES + 1)
    with (tmp_path / "big").open("wb") as file:
        file.write(PNG)
        file.truncate(MAX_IMAGE_BYTES)
    for paths, why in (
        (["large"], "larger than 20 MB"),
        (["big"] * 3, "in total"),
        (["a"] * (MAX_IMAGES + 1), "at most"),
        (["none"], "cannot be read"),
    ):
        with pytest.raises(ImageRefusedError, match=why):
            await content_blocks("look", paths, str(tmp_path))


def image(data: str) -> Json:
    source: Json = {"type": "base64", "media_type": "image/png", "data": data}
    return {"type": "image", "source": source}


def test_an_image_of_a_tool_that_is_too_large_is_not_kept() -> None:
    images = ImageCollector()
    output, events = images.extract([image("A" * (MAX_OUTPUT_IMAGE_BYTES + 4))])
    assert (output, events, images.collect()) == ([{"type": "image", "blob": None}], [], [])


def test_images_that_tools_show_are_taken_out_once() -> None:
    images = ImageCollector()
    shown = base64.b64encode(PNG).decode()
    found, (event,) = images.extract(
        [image(shown), image(shown), {"type": "text", "text": "x"}, image("???")]
    )
    assert images.collect() == [PNG]
    sha256 = hashlib.sha256(PNG).hexdigest()
    assert event == ImageReceived(media_type="image/png", blob=sha256, bytes=len(PNG))
    assert str(found).count(sha256) == 2
    assert shown not in str(found)
    assert images.extract("text") == ("text", [])
    many: list[Json] = [image(base64.b64encode(PNG + bytes([n])).decode()) for n in range(20)]
    output, events = images.extract([*many, image(shown)])
    kept = {hashlib.sha256(each).hexdigest() for each in images.collect()}
    assert len(kept) == len(events) == 9  # the limit is ten in total
    assert all(each in str(output) for each in {*kept, sha256})
    assert (
        str(output).count("'blob': None") == 11
    )  # a client must not look for blobs that were not stored
    assert images.collect() == []
