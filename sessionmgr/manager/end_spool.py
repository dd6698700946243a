"""The spool: a file beside the store for terminal events that the store could not take.

Each line is one terminal event, without its run's secrets. The next manager of the same store
stores the events and removes them from the file; it does not know those secrets.
"""

from __future__ import annotations

import fcntl
import logging
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.model import RunEnded, decode_event, encode_event

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable
    from pathlib import Path

    from sessionmgr.store import Redactor

log: Final = logging.getLogger("sessionmgr.manager")

LOCK_TIMEOUT: Final = 5.0
"""Seconds to wait for another manager that uses the file, which takes milliseconds."""


def redacted_end(event: RunEnded, redactor: Redactor) -> RunEnded:
    """Return a terminal event without secrets."""
    body = encode_event(event)
    redacted = redactor.redact(body)
    if redacted is body:
        return event
    found = decode_event(redacted)
    assert isinstance(found, RunEnded), "redaction keeps the event's type"
    return found


class EndSpool:
    """The file of terminal events that wait for the store; without a path, they are only logged."""

    def __init__(self, path: Path | None) -> None:
        self._path: Final = path

    async def add(self, events: Iterable[RunEnded]) -> None:
        """Add terminal events to the file."""
        lines = [encode_event(event) for event in events]
        for line in lines:
            log.error("The store did not take the end of a run. record=%s", line.decode())
        path = self._path
        if path is None or not lines:
            await trio.lowlevel.checkpoint()
            return

        def write() -> None:
            with _locked_file(path) as file, os.fdopen(os.dup(file), "ab") as writer:
                writer.write(b"".join(line + b"\n" for line in lines))

        await trio.to_thread.run_sync(write)

    async def read(self) -> dict[str, RunEnded]:
        """Return the spooled terminal events, by run."""
        path = self._path
        if path is None or not await trio.Path(path).exists():
            await trio.lowlevel.checkpoint()
            return {}
        ends: dict[str, RunEnded] = {}
        for line in (await trio.Path(path).read_bytes()).splitlines():
            end = _decode_end(line)
            if end is not None and end.run_id is not None:
                ends.setdefault(end.run_id, end)
        return ends

    async def drop(self, run_ids: Collection[str]) -> None:
        """Remove the terminal events of these runs, because they are stored.

        Lines of other runs stay, including those that another manager adds meanwhile.
        """
        path = self._path
        if path is None or not await trio.Path(path).exists():
            await trio.lowlevel.checkpoint()
            return

        def rewrite() -> None:
            with _locked_file(path) as file:
                left = b"".join(
                    line
                    for line in _content(file).splitlines(keepends=True)
                    if (end := _decode_end(line)) is not None and end.run_id not in run_ids
                )
                if not left:
                    path.unlink(missing_ok=True)
                    return
                new = path.with_name(f"{path.name}.new")
                new.unlink(missing_ok=True)
                with os.fdopen(os.open(new, _NEW, 0o600), "wb") as rewritten:
                    rewritten.write(left)
                new.replace(path)

        try:
            await trio.to_thread.run_sync(rewrite)
        except BlockingIOError:  # the next manager removes them
            log.warning("Another process uses the spool. path=%s", path)


_NEW: Final = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
_APPEND: Final = os.O_CREAT | os.O_APPEND | os.O_RDWR | os.O_CLOEXEC


@contextmanager
def _locked_file(path: Path) -> Generator[int]:
    """Open and lock the file, so that managers access it one after the other.

    Raises:
        OSError: The file cannot be opened, or another process has locked it for too long.
    """
    until = time.monotonic() + LOCK_TIMEOUT
    while True:
        file = os.open(path, _APPEND, 0o600)  # as private as the store
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(file).st_nlink:  # else another manager has replaced it
                yield file
                return
        except BlockingIOError:
            if time.monotonic() >= until:
                raise
            time.sleep(0.01)
        finally:
            os.close(file)


def _content(file: int) -> bytes:
    with os.fdopen(os.dup(file), "rb") as reader:
        reader.seek(0)
        return reader.read()


def _decode_end(line: bytes) -> RunEnded | None:
    event = decode_event(line)
    return event if isinstance(event, RunEnded) else None
