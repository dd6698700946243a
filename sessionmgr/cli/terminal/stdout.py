"""Output of verbs on stdout, whose reader may close it early (`| head`)."""

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
    """The reader of stdout is gone; this is no error (`| head`)."""


def print_line(text: str, *, flush: bool = True) -> None:
    """Print `text` and a newline, and flush it by default.

    Raises:
        ReaderGoneError: The reader is gone.
    """
    _write(f"{text}\n", flush=flush)


def print_json(*values: Json | msgspec.Struct) -> None:
    """Print values as JSON, one per line.

    Raises:
        ReaderGoneError: The reader is gone.
    """
    from sessionmgr.model import encode_json

    for value in values:
        _write(f"{escaped_json(encode_json(value).decode())}\n", flush=False)
    flush_stdout()


def print_json_line(body: bytes) -> None:
    """Print stored JSON; `flush_stdout` flushes it.

    Raises:
        ReaderGoneError: The reader is gone.
    """
    _write(f"{escaped_json(body.decode(errors='replace'))}\n", flush=False)


def flush_stdout() -> None:
    """Flush all that was printed.

    Raises:
        ReaderGoneError: The reader is gone.
    """
    _write("", flush=True)


class _OutputMode:
    quiet = False
    interrupted = False
    """Whether a Ctrl-C has arrived that trio has not raised yet."""


def set_quiet(quiet: bool) -> None:
    """Switch notes on stderr off or on."""
    _OutputMode.quiet = quiet


def print_note(text: str) -> None:
    """Print a note on stderr, unless notes are off."""
    if sys.stderr is None or _OutputMode.quiet:
        return
    try:
        sys.stderr.write(f"sessionmgr: {strip_controls(text)}\n")
        sys.stderr.flush()
    except OSError:  # a failed note must not end the command
        drop_stderr()


def drop_stdout() -> None:
    """Replace stdout by /dev/null, so that the interpreter's last flush cannot fail."""
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
    """Make stdout replace characters that its encoding lacks, and open closed streams.

    If the shell has closed one of the three (`>&-`), /dev/null takes its place: otherwise the file
    of the store would get its number, and messages on stderr would be written into it.
    """
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # opens the lowest free number: this one
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")


@contextmanager
def recording_interrupts() -> Generator[None]:
    """Record each Ctrl-C before trio handles it, for the writes that come before a checkpoint.

    A Ctrl-C between two writes would otherwise not interrupt the second.
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
        if error.errno in {errno.EPIPE, errno.EIO}:  # a pipe or a terminal that is closed
            raise ReaderGoneError from None
        raise OSError(error.errno, error.strerror, "stdout") from None
