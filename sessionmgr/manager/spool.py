"""Where the ends of runs go that the store could not take: a file beside it.

Each line is one terminal event, without the secrets of its run: the next manager of the same store
writes them where they belong, and takes the file away, and knows nothing of what was secret.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.model import RunEnded, decode_event, encode_event

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from sessionmgr.store.redaction import Redactor

log: Final = logging.getLogger("sessionmgr.manager")


def without_secrets(event: RunEnded, redactor: Redactor) -> RunEnded:
    """Return a terminal event as it may be written anywhere."""
    body = encode_event(event)
    redacted = redactor.redact(body)
    if redacted is body:
        return event
    found = decode_event(redacted)
    assert isinstance(found, RunEnded), "what is redacted keeps its type"
    return found


class Spool:
    """The file of ends that wait for a store; without a path, they are only logged."""

    def __init__(self, path: Path | None) -> None:
        self._path: Final = path

    async def add(self, events: Iterable[RunEnded]) -> None:
        """Put ends aside."""
        lines = [encode_event(event) for event in events]
        for line in lines:
            log.error("event=end_not_stored record=%s", line.decode())
        path = self._path
        if path is None or not lines:
            await trio.lowlevel.checkpoint()
            return

        def write() -> None:
            flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC
            with os.fdopen(os.open(path, flags, 0o600), "ab") as file:  # as private as the store
                file.write(b"".join(line + b"\n" for line in lines))

        await trio.to_thread.run_sync(write)

    async def read(self) -> dict[str, RunEnded]:
        """Return what was put aside, by run."""
        path = self._path
        if path is None or not await trio.Path(path).exists():
            await trio.lowlevel.checkpoint()
            return {}
        ends: dict[str, RunEnded] = {}
        for line in (await trio.Path(path).read_bytes()).splitlines():
            event = decode_event(line)
            if isinstance(event, RunEnded) and event.run_id is not None:
                ends.setdefault(event.run_id, event)
        return ends

    async def clear(self) -> None:
        """Forget what was put aside: it is stored."""
        if self._path is not None:
            await trio.Path(self._path).unlink(missing_ok=True)
        else:
            await trio.lowlevel.checkpoint()
