"""Images, in and out."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest

from sessionmgr.adapter.kit.images import (
    LARGEST,
    LARGEST_OUT,
    MOST,
    ImageCollector,
    ImageRefusedError,
    media_type_of,
)
from sessionmgr.model import ImageReceived, Json
from sessionmgr_adapters.claude.outgoing import blocks_of

PNG = b"\x89PNG\r\n\x1a\n and more"


async def test_images_are_told_by_what_is_in_them(tmp_path: Path) -> None:
    assert media_type_of(PNG) == "image/png"
    assert media_type_of(b"\xff\xd8\xff\xe0") == "image/jpeg"
    assert media_type_of(b"GIF89a") == "image/gif"
    assert media_type_of(b"RIFF\0\0\0\0WEBPVP8 ") == "image/webp"
    assert media_type_of(b"<svg>") is None
    (tmp_path / "a").write_bytes(PNG)
    blocks = await blocks_of("look", ["a"], str(tmp_path))
    assert base64.b64encode(PNG).decode() in str(blocks)
    assert await blocks_of("look", [], str(tmp_path)) == "look"
    with (tmp_path / "large").open("wb") as file:
        file.write(PNG)
        file.truncate(LARGEST + 1)
    with (tmp_path / "big").open("wb") as file:
        file.write(PNG)
        file.truncate(LARGEST)
    for paths, why in (
        (["large"], "more than 20 MB"),
        (["big"] * 3, "in all"),
        (["a"] * (MOST + 1), "is the most"),
        (["none"], "cannot be read"),
    ):
        with pytest.raises(ImageRefusedError, match=why):
            await blocks_of("look", paths, str(tmp_path))


def image(data: str) -> Json:
    source: Json = {"type": "base64", "media_type": "image/png", "data": data}
    return {"type": "image", "source": source}


def test_an_image_of_a_tool_that_is_too_large_is_not_kept() -> None:
    images = ImageCollector()
    output, events = images.extract([image("A" * (LARGEST_OUT + 4))])
    assert (output, events, images.take()) == ([{"type": "image", "blob": None}], [], [])


def test_images_that_tools_show_are_taken_out_once() -> None:
    images = ImageCollector()
    shown = base64.b64encode(PNG).decode()
    found, (event,) = images.extract(
        [image(shown), image(shown), {"type": "text", "text": "x"}, image("???")]
    )
    assert images.take() == [PNG]
    sha256 = hashlib.sha256(PNG).hexdigest()
    assert event == ImageReceived(media_type="image/png", blob=sha256, bytes=len(PNG))
    assert str(found).count(sha256) == 2
    assert shown not in str(found)
    assert images.extract("text") == ("text", [])
    many: list[Json] = [image(base64.b64encode(PNG + bytes([n])).decode()) for n in range(20)]
    output, events = images.extract([*many, image(shown)])
    kept = {hashlib.sha256(each).hexdigest() for each in images.take()}
    assert len(kept) == len(events) == 9  # ten in all
    assert all(each in str(output) for each in {*kept, sha256})
    assert str(output).count("'blob': None") == 11  # a client must not look for what is not kept
    assert images.take() == []
