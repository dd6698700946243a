"""What a verb prints on stdout, where the reader may have had enough before the end."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from sessionmgr.cli.terminal.safe_text import escaped_json, strip_controls

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import FrameType

    import msgspec

    from sessionmgr.model import Json


class ReaderGoneError(Exception):
    """Nobody reads stdout any more; that is no mistake (`| head`)."""


def print_line(text: str, *, flush: bool = True) -> None:
    """Print `text` and a newline, at once unless more is to follow.

    Raises:
        ReaderGoneError: Nobody reads it.
    """
    _write(f"{text}\n", flush=flush)


def print_json(*values: Json | msgspec.Struct) -> None:
    """Print values as JSON, one a line.

    Raises:
        ReaderGoneError: Nobody reads them.
    """
    from sessionmgr.model import encode_json

    for value in values:
        _write(f"{escaped_json(encode_json(value).decode())}\n", flush=False)
    flush_stdout()


def print_json_line(body: bytes) -> None:
    """Print stored JSON; `finish` flushes it.

    Raises:
        ReaderGoneError: Nobody reads it.
    """
    _write(f"{escaped_json(body.decode(errors='replace'))}\n", flush=False)


def flush_stdout() -> None:
    """Have all that was printed go out.

    Raises:
        ReaderGoneError: Nobody reads it.
    """
    _write("", flush=True)


class _OutputMode:
    quiet = False
    interrupted = False
    """Whether a Ctrl-C has come that trio has not raised yet."""


def set_quiet(quiet: bool) -> None:
    """Say nothing beside the results from now on, or say it again."""
    _OutputMode.quiet = quiet


def print_note(text: str) -> None:
    """Say something beside the results, on stderr, unless it is to be quiet."""
    if sys.stderr is None or _OutputMode.quiet:
        return
    try:
        sys.stderr.write(f"sessionmgr: {strip_controls(text)}\n")
        sys.stderr.flush()
    except OSError:  # a failed note must not end the command
        drop_stderr()


def drop_stdout() -> None:
    """Let what the interpreter flushes at its end find somebody who listens."""
    _redirect_to_null(sys.stdout)


def drop_stderr() -> None:
    """Stop writing to stderr: its reader is gone, or its disk is full."""
    _redirect_to_null(sys.stderr)


def _redirect_to_null(stream: TextIO | None) -> None:
    if stream is None:
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def prepare_streams() -> None:
    """Have stdout replace what its encoding cannot hold instead of dying of it.

    Where the shell has closed one of the three (`>&-`), /dev/null takes its place: else the store
    would get its number, and whoever complains on stderr would write into it.
    """
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")


@contextmanager
def recording_interrupts() -> Generator[None]:
    """Have each Ctrl-C noted before trio handles it, for the writes that come before a checkpoint.

    One that comes between two writes would otherwise not interrupt the second.
    """
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or not _is_main_thread():
        yield  # SIGINT is ignored, or this is not the main thread
        return
    handle = before

    def strike(number: int, frame: FrameType | None) -> None:
        _OutputMode.interrupted = True
        handle(number, frame)

    signal.signal(signal.SIGINT, strike)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        _OutputMode.interrupted = False


@contextmanager
def _interruptible() -> Generator[None]:
    """Let Ctrl-C interrupt a write that blocks on its reader.

    trio handles Ctrl-C only at a checkpoint, and a write has none.
    """
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or not _is_main_thread():
        yield  # SIGINT is ignored, or this is not the main thread
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if _OutputMode.interrupted:
            raise KeyboardInterrupt
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _write(text: str, *, flush: bool) -> None:
    if sys.stdout is None:  # the shell's `>&-`
        raise ReaderGoneError
    try:
        with _interruptible():
            sys.stdout.write(text)
            if flush:
                sys.stdout.flush()
    except KeyboardInterrupt:
        drop_stdout()  # otherwise the interpreter's last flush would block again
        raise
    except OSError as error:
        if error.errno in {errno.EPIPE, errno.EIO}:  # a pipe, or a terminal, that is closed
            raise ReaderGoneError from None
        raise OSError(error.errno, error.strerror, "stdout") from None
