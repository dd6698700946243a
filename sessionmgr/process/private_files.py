"""How a text gets to a child: on its command line, through stdin, or in a private file.

Everybody on the machine may read a command line, the system limits its length, and a text in it
can be taken for an option; so only short and harmless ones go there.
"""

from __future__ import annotations

import enum
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from sessionmgr.process.temporary_directories import OURS

if TYPE_CHECKING:
    from types import TracebackType

LARGEST_ARGUMENT: Final = 4 * 1024
"""In bytes; Linux has its limit at 128 KiB for one argument, others far below."""


class TextChannel(enum.Enum):
    """Where a text goes."""

    ARGUMENT = "argument"
    STDIN = "stdin"
    FILE = "file"


def choose_channel(text: str, *, stdin: bool) -> TextChannel:
    """Return where a text goes, to a child whose stdin may be used for it or not."""
    data = text.encode(errors="replace")
    if len(data) <= LARGEST_ARGUMENT and "\0" not in text and not text.startswith("-"):
        return TextChannel.ARGUMENT
    return TextChannel.STDIN if stdin else TextChannel.FILE


class PrivateFiles:
    """A directory that only we can enter, for files of one run; `with` makes and removes it.

    It is created in `parent`, or in the temporary directory of this process; the next launcher
    removes files that a crash leaves there. With a `name`, the file gets that name.
    """

    def __init__(self, parent: str | Path | None = None, *, name: str | None = None) -> None:
        self._parent = parent
        self._name = name
        self._directory: Path | None = None

    def __enter__(self) -> Self:
        if self._name is None and self._parent is None:
            self._directory = OURS.make()
        elif self._name is None:
            made = tempfile.mkdtemp(prefix="sessionmgr-", dir=self._parent)
            self._directory = Path(made).absolute()
        else:
            place = Path(self._parent or tempfile.gettempdir(), self._name).absolute()
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place)  # a crash of ours has left it; another's we could not remove
            place.mkdir(mode=0o700)
            self._directory = place
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        directory, self._directory = self._directory, None
        if directory is None:
            return
        if self._name is None and self._parent is None:
            OURS.remove(directory)
        else:
            shutil.rmtree(directory, ignore_errors=True)

    @property
    def directory(self) -> Path:
        """Where they are."""
        if self._directory is None:
            raise RuntimeError("private files are written inside their block: with PrivateFiles()")
        return self._directory

    def write(self, name: str, text: str) -> Path:
        """Write a new file that only we can read and return its absolute path."""
        path = self.directory / name
        if path.parent != self._directory or name in ("", ".", ".."):
            raise ValueError(f"{name!r} is no plain name of a file")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
            file.write(text.encode(errors="replace"))
        return path
