"""Whether a provider could be used now."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

from sessionmgr.model.json import Json, Unreadable, parse_json
from sessionmgr.process.program import NotStartedError, find

LARGEST: Final = 4 * 1024 * 1024
"""Bytes of a settings or login file that are read."""


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a provider could be used now; `detail` says why not, and what to do about it.

    `skip`: its program is not installed. `fail`: it is, and no run could go well. What cannot be
    known without asking the provider is `ok`, and `detail` says that it is unknown.
    """

    state: Literal["ok", "skip", "fail"] = "ok"
    detail: str = ""
    """Where it is not well, `problem; remedy`."""


def missing_program(
    command: Sequence[str], env: Mapping[str, str], cwd: str, remedy: str
) -> Health | None:
    """Return that the program of a command is not there, or cannot be run; None if it can."""
    program = command[0] if command else ""
    path = env.get("PATH", os.defpath)
    try:
        find(os.fsencode(program), os.fsencode(path), os.fsencode(cwd))
    except NotStartedError as error:
        if error.what == b"executable":
            found = os.fsdecode(error.path)
            return Health(state="fail", detail=f"{found} cannot be executed; {remedy}")
        where = "" if "/" in program else " on PATH"
        return Health(state="skip", detail=f"there is no program {program!r}{where}; {remedy}")
    return None


class FileUnreadable(Exception):
    """A file is there and cannot be read, or is of another format; the text says so."""


def read_bounded(path: Path) -> bytes | None:
    """Return what a file holds; None if there is none.

    Raises:
        FileUnreadable: It is there, and is not a regular file of a moderate size that we may read.
    """
    try:
        if not path.is_file():
            if path.exists():
                raise FileUnreadable(f"{path} is not a file")
            return None
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise FileUnreadable(f"{path} cannot be read ({error.strerror})") from None
    if len(data) > LARGEST:
        raise FileUnreadable(f"{path} is larger than {LARGEST // 1024 // 1024} MiB")
    return data


def read_table(path: Path) -> dict[str, Json]:
    """Return the JSON object in a file; an empty one if there is no file.

    Raises:
        FileUnreadable: It cannot be read, or holds something else.
    """
    data = read_bounded(path)
    if data is None:
        return {}
    found = parse_json(data)
    if isinstance(found, Unreadable) or not isinstance(found, dict):
        raise FileUnreadable(f"{path} is not a JSON object")
    return found
