"""Private files of a run, and the other channels that pass a text to a child: argv and stdin.

All users of the machine can read a command line, the system limits its length, and a text in it can
be mistaken for an option; so only short and harmless texts go there.
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
"""In bytes; Linux limits one argument to 128 KiB, other systems to far less."""


class TextChannel(enum.Enum):
    """Channel by which a text reaches a child."""

    ARGUMENT = "argument"
    STDIN = "stdin"
    FILE = "file"


def choose_channel(text: str, *, stdin: bool) -> TextChannel:
    """Return the channel for a text; `stdin` is whether the child's stdin may carry it."""
    data = text.encode(errors="replace")
    if len(data) <= LARGEST_ARGUMENT and "\0" not in text and not text.startswith("-"):
        return TextChannel.ARGUMENT
    return TextChannel.STDIN if stdin else TextChannel.FILE


class PrivateFiles:
    """Directory that only the user can enter, for files of one run; `with` creates and removes it.

    It is created in `parent`, or in the temporary directory of this process; the next launcher
    removes files that a crash leaves there. With a `name`, the directory gets that name.
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
                shutil.rmtree(place)  # left by a crash of ours; we could not remove another user's
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
        """Path of the directory."""
        if self._directory is None:
            raise RuntimeError("write private files inside the block: with PrivateFiles() as files")
        return self._directory

    def write(self, name: str, text: str) -> Path:
        """Write a new file that only the user can read and return its absolute path."""
        path = self.directory / name
        if path.parent != self._directory or name in ("", ".", ".."):
            raise ValueError(f"{name!r} is not a plain file name")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
            file.write(text.encode(errors="replace"))
        return path
