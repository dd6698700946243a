"""Translation of a failed start, as the spawner or reaper reports it, into an error."""

from __future__ import annotations

import os
from typing import Final

from sessionmgr.process.errors import NoSuchDirectory, NotExecutable, ProgramNotFound, SpawnFailed

_MEANING: Final = {
    b"program": (ProgramNotFound, "program not found"),
    b"interpreter": (
        ProgramNotFound,
        "the interpreter in the first line of the script was not found",
    ),
    b"executable": (NotExecutable, "the file is not executable"),
    b"directory": (NoSuchDirectory, "cannot enter the directory of the program"),
    b"guard": (SpawnFailed, "cannot create a reaper process"),
    b"system": (SpawnFailed, "the system refused to start the program"),
}


def spawn_error(what: bytes, path: bytes, number: int) -> SpawnFailed:
    """Return the error for the fields of a `program.NotStartedError`."""
    error, text = _MEANING[what]
    return error(text, os.fsdecode(path), number)
