"""Whether a provider could be used now."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

from sessionmgr.adapter.bounded_file import FileRefused, read_bytes
from sessionmgr.model.json import Json, Unreadable, parse_json
from sessionmgr.process.program import NotStartedError, find

LARGEST: Final = 4 * 1024 * 1024
"""Maximum number of bytes read from a settings or login file."""


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a provider is usable now; `detail` explains the problem and the remedy.

    `skip`: its program is not installed. `fail`: it is installed, but no run could succeed. If only
    the provider itself could tell, the state is `ok`, and `detail` says that it is unknown.
    """

    state: Literal["ok", "skip", "fail"] = "ok"
    detail: str = ""
    """If it is not well: `problem; remedy`."""


def missing_program(
    command: Sequence[str], env: Mapping[str, str], cwd: str, remedy: str
) -> Health | None:
    """Return the problem if a command's program is missing or not executable, else None."""
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
    """Return the contents of a settings or login file; None if it does not exist.

    Raises:
        FileRefused: It is not a readable regular file of moderate size.
    """
    try:
        if not os.path.lexists(path):
            return None
    except ValueError:  # a NUL in its name
        return None
    return read_bytes(path, limit=LARGEST)


def read_table(path: Path) -> dict[str, Json]:
    """Return the JSON object in a file; empty if the file does not exist.

    Raises:
        FileRefused: It is unreadable or contains something else.
    """
    data = read_bounded(path)
    if data is None:
        return {}
    found = parse_json(data)
    if isinstance(found, Unreadable) or not isinstance(found, dict):
        raise FileRefused(f"{path} is not a JSON object")
    return found
