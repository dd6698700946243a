"""Content of a prompt: text, links, resources and images, as one text and image files."""

from __future__ import annotations

import base64
import binascii
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.acp_server.errors import INVALID_PARAMS, AcpRequestRefused
from sessionmgr.adapter.kit import MAX_IMAGE_BYTES, MEGABYTE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.acp_server.offer import AgentOffer
    from sessionmgr.acp_server.params import JsonObject

_SUFFIXES: Final = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
}


class PromptContent(msgspec.Struct, frozen=True):
    """Text of a prompt, and the bytes of its images with the suffixes of their files."""

    text: str
    images: tuple[tuple[str, bytes], ...] = ()


def read_prompt(blocks: Sequence[JsonObject], offer: AgentOffer) -> PromptContent:
    """Return the content of a prompt.

    Raises:
        AcpRequestRefused: The agent cannot take a part of it, or it has no text.
    """
    text = ""
    images: list[tuple[str, bytes]] = []
    for number, block in enumerate(blocks):
        where = f"prompt[{number}]"
        match block:
            case {"type": "text", "text": str(piece)}:
                text = _joined(text, piece, "\n")
            case {"type": "resource_link", "uri": str(uri), "name": str(name)}:
                _require(where, "a link", takes=offer.embedded_context, provider=offer.provider)
                text = _joined(text, f"[{name}]({uri})", " ")
            case {"type": "resource", "resource": {"uri": str(uri), "text": str(content)}}:
                _require(where, "a resource", takes=offer.embedded_context, provider=offer.provider)
                text = _joined(text, f'<context uri="{uri}">\n{content}\n</context>', "\n")
            case {"type": "image", "data": str(data), "mimeType": str(media_type)} | {
                "type": "resource",
                "resource": {"blob": str(data), "mimeType": str(media_type)},
            } if media_type in _SUFFIXES:
                _require(where, "an image", takes=offer.images, provider=offer.provider)
                images.append((_SUFFIXES[media_type], _decoded(where, data)))
            case _:
                kind = block.get("mimeType") or block.get("type")
                raise AcpRequestRefused(
                    INVALID_PARAMS,
                    f"{where}: {offer.provider} takes no content of type {kind!r}; remove it",
                )
    if not text.strip():
        raise AcpRequestRefused(
            INVALID_PARAMS, "prompt: it has no text; write what the agent should do"
        )
    return PromptContent(text, tuple(images))


def _joined(text: str, piece: str, separator: str) -> str:
    is_apart = not text or not piece or text[-1].isspace() or piece[0].isspace()
    return text + piece if is_apart else text + separator + piece


def _require(where: str, what: str, *, takes: bool, provider: str) -> None:
    if not takes:
        raise AcpRequestRefused(INVALID_PARAMS, f"{where}: {provider} takes no {what[2:].strip()}")


def _decoded(where: str, data: str) -> bytes:
    if len(data) > MAX_IMAGE_BYTES * 4 // 3 + 4:
        raise AcpRequestRefused(
            INVALID_PARAMS, f"{where}: the image is larger than {MAX_IMAGE_BYTES // MEGABYTE} MB"
        )
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise AcpRequestRefused(
            INVALID_PARAMS, f"{where}: data is not valid base64: {error}"
        ) from None


class ImageFiles:
    """Directory of the files of images in prompts; it exists from the first image to the end."""

    def __init__(self) -> None:
        self._directory: tempfile.TemporaryDirectory[str] | None = None

    def write(self, content: PromptContent) -> tuple[str, ...]:
        """Write the images of a prompt, and return the paths of their files."""
        if not content.images:
            return ()
        if self._directory is None:
            self._directory = tempfile.TemporaryDirectory(prefix="sessionmgr-acp-")
        paths: list[str] = []
        for suffix, data in content.images:
            path = Path(self._directory.name, f"{uuid.uuid4().hex}{suffix}")
            path.write_bytes(data)
            paths.append(str(path))
        return tuple(paths)

    def remove(self, paths: Sequence[str]) -> None:
        """Remove the files of a prompt whose run is over."""
        for path in paths:
            Path(path).unlink(missing_ok=True)

    def close(self) -> None:
        """Remove the directory."""
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None
