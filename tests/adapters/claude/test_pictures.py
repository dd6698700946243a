"""Images, in and out."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from sessionmgr.adapter.kit.images import LARGEST, MOST, ImageRefusedError, media_type_of
from sessionmgr.model import (
    Json,
)
from sessionmgr_adapters.claude.pictures import Gallery, blocks_of

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


def test_images_that_tools_show_are_taken_out_once() -> None:
    gallery = Gallery()
    shown = base64.b64encode(PNG).decode()
    found = gallery.hang([image(shown), image(shown), {"type": "text", "text": "x"}, image("???")])
    (picture,) = gallery.fresh
    assert picture.data == PNG
    assert str(found).count(picture.sha256) == 2
    assert shown not in str(found)
    assert gallery.hang("text") == "text"
    many: list[Json] = [image(base64.b64encode(PNG + bytes([n])).decode()) for n in range(20)]
    named = str(gallery.hang([*many, image(shown)]))
    kept = {each.sha256 for each in gallery.fresh}
    assert len(kept) == 10
    assert all(each in named for each in kept)
    assert named.count("'blob': None") == 11  # nobody is sent for what was not kept
