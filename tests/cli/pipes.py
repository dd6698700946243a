"""Pipes and terminals to print into, with and without a reader."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO

END = b"\x05"
"""A byte that no command prints."""


@contextmanager
def pipe() -> Generator[tuple[int, TextIO]]:
    """Make a pipe: a descriptor to read from, and a stream to write to."""
    ours, theirs = os.pipe()
    with os.fdopen(ours, "rb", buffering=0), os.fdopen(theirs, "w", encoding="utf-8") as stream:
        yield ours, stream


@contextmanager
def unread_pipe() -> Generator[TextIO]:
    """Make a stream without a reader."""
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
    """Return all that was written to a terminal; the kernel passes it on with a delay."""
    os.write(theirs, END)
    said = b""
    while not said.endswith(END):
        said += os.read(ours, 65536)
    return said.removesuffix(END)
