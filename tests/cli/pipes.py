"""Pipes and terminals to print into, with a reader and without."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO

END = b"\x05"
"""What none of ours says."""


@contextmanager
def pipe() -> Generator[tuple[int, TextIO]]:
    """Make a pipe: a descriptor to read from, and a stream to write to."""
    ours, theirs = os.pipe()
    with os.fdopen(ours, "rb", buffering=0), os.fdopen(theirs, "w", encoding="utf-8") as stream:
        yield ours, stream


@contextmanager
def unread_pipe() -> Generator[TextIO]:
    """Make a stream that nobody reads."""
    ours, theirs = os.pipe()
    os.close(ours)
    with os.fdopen(theirs, "w", encoding="utf-8") as stream:
        yield stream


@contextmanager
def pseudo_terminal(encoding: str = "utf-8") -> Generator[tuple[int, TextIO]]:
    """Make a terminal: a descriptor to read from, and a stream to write to."""
    ours, theirs = os.openpty()
    with os.fdopen(ours, "rb", buffering=0), os.fdopen(theirs, "w", encoding=encoding) as stream:
        yield ours, stream


def read_terminal(ours: int, theirs: int) -> bytes:
    """Return all that was written to a terminal: the kernel hands it on when it has time."""
    os.write(theirs, END)
    said = b""
    while not said.endswith(END):
        said += os.read(ours, 65536)
    return said.removesuffix(END)
