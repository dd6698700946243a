"""Pipes to print into, with a reader and without."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO


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
