"""Whether a provider could be used now."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

from sessionmgr.model.json import Json, Unreadable, parse_json
from sessionmgr.process.program import NotStartedError, find
from sessionmgr.provider.bounded_file import FileRefused, read_bytes

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


def read_bounded(path: Path) -> bytes | None:
    """Return what a file of settings or of a login holds; None if there is none.

    Raises:
        FileRefused: It is there, and is not a regular file of a moderate size that we may read.
    """
    try:
        if not os.path.lexists(path):
            return None
    except ValueError:  # a NUL in its name
        return None
    return read_bytes(path, limit=LARGEST)


def read_table(path: Path) -> dict[str, Json]:
    """Return the JSON object in a file; an empty one if there is no file.

    Raises:
        FileRefused: It cannot be read, or holds something else.
    """
    data = read_bounded(path)
    if data is None:
        return {}
    found = parse_json(data)
    if isinstance(found, Unreadable) or not isinstance(found, dict):
        raise FileRefused(f"{path} is not a JSON object")
    return found
