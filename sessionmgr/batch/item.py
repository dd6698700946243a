"""What an attempt leaves beside its result: `items/<job>/attempt-<n>/`, made when there is any."""

from __future__ import annotations

import errno
import hashlib
import logging
import mimetypes
import re
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, Self

import trio

from sessionmgr.errors import UnknownId
from sessionmgr.model import OutputReceived, ProcessExited
from sessionmgr.process.private_path import (
    make_private_directory,
    unlinked_opener,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from sessionmgr.manager import Manager
    from sessionmgr.model import AnyEvent, RunResult

log: Final = logging.getLogger("sessionmgr.batch")

ROOM: Final = 16 * 1024 * 1024
LONGEST: Final = 80


class Item:
    """The directory of one attempt; with no path, nothing is kept."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._stderr: BinaryIO | None = None
        self._room = ROOM

    def __enter__(self) -> Self:
        """Keep what is told from now on."""
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close what is open."""
        if self._stderr is not None:
            self._stderr.close()

    def see(self, events: Iterable[AnyEvent]) -> None:
        """Keep what belongs here of what has happened."""
        for event in events:
            if self._path is None:
                return
            try:
                self._see(self._path, event)
            except OSError as error:
                self._give_up(error)

    def _see(self, path: str, event: AnyEvent) -> None:
        match event:
            case OutputReceived(stream="stderr", text=text):
                self._note(path, text)
            case ProcessExited(left_running=left) if left:
                place = self._place(path) / "left_running"
                with open(place, "wb", opener=unlinked_opener) as file:  # its mode
                    file.write("".join(f"{each}\n" for each in left).encode())
            case _:
                pass

    def _give_up(self, error: OSError) -> None:
        """Keep nothing more: all of it stands in the store, and no job is lost for a copy."""
        log.warning("event=item_not_kept path=%s why=%s", self._path, error.strerror or error)
        self._path = None

    def _note(self, path: str, text: str) -> None:
        data = text.encode("utf-8", "replace")
        if self._room <= 0 or not data:
            return
        if self._stderr is None:
            place = self._place(path) / "stderr"
            self._stderr = open(  # noqa: SIM115  # closed with the item
                place, "wb", buffering=0, opener=unlinked_opener
            )
        self._stderr.write(data[: self._room])
        self._room -= len(data)

    async def keep(self, manager: Manager, result: RunResult) -> None:
        """Keep the images that it made."""
        if self._path is None:
            return
        for image in result.images:
            suffix = mimetypes.guess_extension(image.media_type) or ""
            try:
                data = await manager.blob(image.blob)
                place = self._place(self._path) / f"{image.blob}{suffix}"
                async with await trio.open_file(place, "wb", opener=unlinked_opener) as file:
                    await file.write(data)
            except UnknownId:
                continue  # whoever made it has not stored it
            except OSError as error:
                self._give_up(error)
                return

    def _place(self, path: str) -> Path:
        place = Path(path)
        for each in (place, *place.parents[:2]):  # attempt, job, items
            if each.is_symlink():
                raise OSError(errno.ELOOP, "a symbolic link is not followed here", str(each))
        make_private_directory(place)
        return place


def item_path(out: Path, job: str, attempt: int) -> str:
    """Return the directory of an attempt."""
    return f"{out}/items/{file_name(job)}/attempt-{attempt}"


_PLAIN: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


def file_name(job: str) -> str:
    """Return a name for a job's directory: its id where that can be one, else like it."""
    if len(job) <= LONGEST and _PLAIN.fullmatch(job):
        return job
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", job[:LONGEST]).lstrip(".")
    return f"{plain}~{hashlib.sha256(job.encode('utf-8', 'replace')).hexdigest()[:12]}"
