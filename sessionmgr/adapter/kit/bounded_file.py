"""Reader of user-named files, up to a size limit; it refuses devices and pipes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from sessionmgr.model import Json, UnreadableJson, parse_json

MEBIBYTE: Final = 1024 * 1024
LARGEST_TEXT: Final = 10 * MEBIBYTE
"""Maximum number of bytes of a prompt or another text file."""
LARGEST_SETTINGS: Final = 4 * MEBIBYTE
"""Maximum number of bytes of a settings or login file."""


class FileRefusedError(Exception):
    """A file is unreadable or of the wrong kind; the text says why."""


def read_bounded_bytes(path: Path, *, limit: int = LARGEST_TEXT, regular: bool = True) -> bytes:
    """Return a file's contents, up to a limit; `regular` refuses devices and pipes.

    Raises:
        FileRefusedError: The file is unreadable or too large.
    """
    try:
        if path.is_dir():
            raise FileRefusedError(f"{path} is a directory")
        if regular and path.exists() and not path.is_file():
            raise FileRefusedError(f"{path} is not a regular file")
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise FileRefusedError(f"{path}: {error.strerror}") from None
    except ValueError:  # a NUL in its name
        raise FileRefusedError(f"{str(path)!r} is not a path") from None
    if len(data) > limit:
        size = path.stat().st_size / MEBIBYTE if path.is_file() else 0
        how_large = f" ({size:,.1f} MiB)" if size else ""
        raise FileRefusedError(f"{path} is larger than {limit // MEBIBYTE} MiB{how_large}")
    return data


def read_bounded_text(path: Path, *, regular: bool = True) -> str:
    """Return a file's text.

    Raises:
        FileRefusedError: The file is unreadable, too large, or not UTF-8.
    """
    try:
        return read_bounded_bytes(path, regular=regular).decode()
    except UnicodeDecodeError:
        raise FileRefusedError(f"{path} is not UTF-8 text") from None


def read_optional_file(path: Path) -> bytes | None:
    """Return the contents of a settings or login file; None if it does not exist.

    Raises:
        FileRefusedError: The path is not a readable regular file of moderate size.
    """
    try:
        if not os.path.lexists(path):
            return None
    except ValueError:  # a NUL in its name
        return None
    return read_bounded_bytes(path, limit=LARGEST_SETTINGS)


def read_json_object(path: Path) -> dict[str, Json]:
    """Return the JSON object in a file; empty if the file does not exist.

    Raises:
        FileRefusedError: The file is unreadable or does not contain a JSON object.
    """
    data = read_optional_file(path)
    if data is None:
        return {}
    found = parse_json(data)
    if isinstance(found, UnreadableJson) or not isinstance(found, dict):
        raise FileRefusedError(f"{path} is not a JSON object")
    return found
