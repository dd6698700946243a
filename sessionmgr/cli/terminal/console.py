"""The console of a run: text on stdout and notes on stderr, in order if both are the same file.

A thread writes, so that a slow reader blocks only the task that writes, not the event loop.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import TYPE_CHECKING, Final, TextIO

import trio

from sessionmgr.cli.terminal.colour import colour_for, uncoloured
from sessionmgr.cli.terminal.render_events import RunNoteLine, RunText
from sessionmgr.cli.terminal.safe_text import SafeStream, encode_text, escaped_json, strip_controls
from sessionmgr.cli.terminal.stdout import ReaderGoneError

if TYPE_CHECKING:
    from collections.abc import Iterable

_GONE: Final = frozenset({errno.EPIPE, errno.EIO, errno.EBADF})
_OUT: Final = 1
_ERR: Final = 2


class Console:
    """Console of a command. `loudness`: 0 prints errors only, 1 the usual notes, 2 every detail."""

    def __init__(
        self, out: TextIO | None, err: TextIO | None, *, loudness: int = 1, text: bool = True
    ) -> None:
        self._out: Final = out
        self._err = err
        self._loudness: Final = loudness
        self._text: Final = text
        self._safe: Final = SafeStream() if out is not None and out.isatty() else None
        self._together: Final = _is_same_file(out, err)
        self._ink: Final = colour_for(err) if err is not None else uncoloured
        self._open_line = False
        """Whether the text stopped within a line."""

    async def write(self, pieces: Iterable[RunText | RunNoteLine]) -> None:
        """Print text and notes.

        Raises:
            ReaderGoneError: The reader of stdout is gone.
        """
        written: list[tuple[int, str]] = []
        for piece in pieces:
            if isinstance(piece, RunText):
                if self._text:
                    written += self._format_text(piece)
            elif self._is_wanted(piece):
                written += self._format_note(piece)
        await self._write(written)

    async def write_line(self, line: bytes) -> None:
        """Print a line of JSON on stdout.

        Raises:
            ReaderGoneError: The reader of stdout is gone.
        """
        await self._write([(_OUT, escaped_json(line.decode()) + "\n")])

    async def end_line(self) -> None:
        """End the text's line if it stopped within one."""
        await self.write([RunText("", ends=True)])

    def _format_text(self, piece: RunText) -> list[tuple[int, str]]:
        said = piece.text
        if self._safe is not None:
            said = self._safe.feed(said)
            if piece.ends:
                said += self._safe.close()
        if said:
            self._open_line = not said.endswith("\n")
        if piece.ends and self._open_line:
            said += "\n"
            self._open_line = False
        return [(_OUT, said)] if said else []

    def _format_note(self, note: RunNoteLine) -> list[tuple[int, str]]:
        line = (_ERR, self._ink(strip_controls(note.text), note.tone) + "\n")
        if self._together and self._open_line:
            self._open_line = False
            return [(_OUT, "\n"), line]
        return [line]

    def _is_wanted(self, note: RunNoteLine) -> bool:
        if self._err is None:
            return False
        if note.detail:
            return self._loudness > 1
        return self._loudness > 0 or note.tone == "bad"

    async def _write(self, written: list[tuple[int, str]]) -> None:
        if not written:
            await trio.lowlevel.checkpoint()
            return
        await trio.to_thread.run_sync(self._write_now, written, abandon_on_cancel=True)

    def _write_now(self, written: list[tuple[int, str]]) -> None:
        for where, text in written:
            stream = self._out if where == _OUT else self._err
            if stream is None:
                if where == _OUT:
                    raise ReaderGoneError
                continue
            try:
                _write_all(stream, text)
            except OSError as error:
                if where == _ERR:
                    self._err = None  # its reader is gone or its disk is full; stdout continues
                    continue
                if error.errno not in _GONE:
                    raise OSError(error.errno, error.strerror, stream.name) from None
                raise ReaderGoneError from None


def _write_all(stream: TextIO, text: str) -> None:
    left = memoryview(encode_text(text, stream.encoding or "utf-8"))
    while left:
        left = left[os.write(stream.fileno(), left) :]


def _is_same_file(out: TextIO | None, err: TextIO | None) -> bool:
    """Return whether both streams lead to the same terminal, pipe or file."""
    if out is None or err is None:
        return False
    try:
        ours, theirs = os.fstat(out.fileno()), os.fstat(err.fileno())
    except (OSError, ValueError):
        return False  # one of them is closed
    return (ours.st_dev, ours.st_ino) == (theirs.st_dev, theirs.st_ino)


def make_console(*, loudness: int, text: bool = True) -> Console:
    """Return the console of this process."""
    return Console(sys.stdout, sys.stderr, loudness=loudness, text=text)
