"""Error classes for programs that did not start."""

from __future__ import annotations

import os
from typing import Final

from sessionmgr.process.errors import NoSuchDirectory, NotExecutable, ProgramNotFound, SpawnFailed

_MEANING: Final = {
    b"program": (ProgramNotFound, "there is no such program"),
    b"interpreter": (ProgramNotFound, "the interpreter that its first line names is missing"),
    b"executable": (NotExecutable, "it cannot be executed"),
    b"directory": (NoSuchDirectory, "it cannot be run in that directory"),
    b"guard": (SpawnFailed, "no guard could be made"),
    b"system": (SpawnFailed, "the system refused to start it"),
}


def spawn_error(what: bytes, path: bytes, number: int) -> SpawnFailed:
    """Return the error for the fields of a `program.NotStartedError`."""
    error, text = _MEANING[what]
    return error(text, os.fsdecode(path), number)
