"""Files of an attempt beside its result: `items/<job>/attempt-<n>/`, created on first use."""

from __future__ import annotations

import errno
import hashlib
import logging
import mimetypes
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, Self

import trio

from sessionmgr.batch.file_executor import in_thread
from sessionmgr.model import OutputReceived, ProcessExited
from sessionmgr.process import make_private_directory, unlinked_opener
from sessionmgr.store import StoreError, UnknownId

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType

    from sessionmgr.manager import Manager
    from sessionmgr.model import AnyEvent, RunResult

log: Final = logging.getLogger("sessionmgr.batch")

ROOM: Final = 16 * 1024 * 1024
LONGEST: Final = 80
PATIENCE: Final = 10.0
"""Time limit in seconds for one write."""


class AttemptDirectory:
    """The directory of one attempt; without a path, it stores nothing.

    Threads write the files, and the batch waits for them only briefly. The files are copies: the
    store has all their contents.
    """

    def __init__(self, path: str | None, limiter: trio.CapacityLimiter | None = None) -> None:
        self._path = path
        self._limiter: Final = limiter
        self._stderr: BinaryIO | None = None
        self._room = ROOM

    async def __aenter__(self) -> Self:
        """Start to store copies."""
        await trio.lowlevel.checkpoint()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the files."""
        if self._stderr is not None and self._path is not None:
            with trio.CancelScope(shield=True):
                await self._write_bounded(self._stderr.close)

    async def record_events(self, events: Iterable[AnyEvent]) -> None:
        """Store what events report of standard error and of processes left running."""
        errors, left_running = list[str](), list[str]()
        for event in events:
            match event:
                case OutputReceived(stream="stderr", text=text):
                    errors.append(text)
                case ProcessExited(left_running=left):
                    left_running += left
                case _:
                    pass
        path = self._path
        if path is not None and (errors or left_running):
            await self._write_bounded(lambda: self._write(path, "".join(errors), left_running))

    async def _write_bounded(self, work: Callable[[], None]) -> None:
        """Write one piece; if that fails or takes too long, disable the directory."""
        try:
            with trio.fail_after(PATIENCE):
                await in_thread(work, limiter=self._limiter)
        except OSError as error:
            self._disable(error.strerror or str(error))
        except trio.TooSlowError:
            self._disable(f"the disk did not respond for {PATIENCE:g} s")

    def _disable(self, why: str) -> None:
        """Store no more copies: they must not cost or delay a job."""
        log.warning(
            "The files of an attempt are no longer stored. path=%s error=%s", self._path, why
        )
        self._path = None

    # --- in a thread -----------------------------------------------------------------------------

    def _write(self, path: str, errors: str, left_running: Sequence[str]) -> None:
        try:
            if errors:
                self._note(path, errors)
        finally:
            if self._path is None and self._stderr is not None:
                self._stderr.close()  # disabled meanwhile
        if left_running:
            target = self._prepare_path(path) / "left_running"
            with open(target, "wb", opener=unlinked_opener) as file:
                file.write("".join(f"{each}\n" for each in left_running).encode())

    def _note(self, path: str, text: str) -> None:
        data = text.encode("utf-8", "replace")
        if self._room <= 0 or not data:
            return
        if self._stderr is None:
            target = self._prepare_path(path) / "stderr"
            self._stderr = open(  # noqa: SIM115  # closed with the item
                target, "wb", buffering=0, opener=unlinked_opener
            )
        self._stderr.write(data[: self._room])
        self._room -= len(data)

    def _write_image(self, path: str, name: str, data: bytes) -> None:
        with open(self._prepare_path(path) / name, "wb", opener=unlinked_opener) as file:
            file.write(data)

    # --- in the event loop -----------------------------------------------------------------------

    async def save_images(self, manager: Manager, result: RunResult) -> None:
        """Store the images that the run has produced."""
        for image in result.images:
            if self._path is None:
                return
            suffix = mimetypes.guess_extension(image.media_type) or ""
            try:
                data = await manager.blob(image.blob)
            except UnknownId:
                continue  # the store does not have it
            except StoreError as error:
                self._disable(str(error))
                return
            write = partial(self._write_image, self._path, f"{image.blob}{suffix}", data)
            await self._write_bounded(write)

    def _prepare_path(self, path: str) -> Path:
        target = Path(path)
        for each in (target, *target.parents[:2]):  # attempt, job, items
            if each.is_symlink():
                raise OSError(errno.ELOOP, "this path must not be a symbolic link", str(each))
        make_private_directory(target)
        return target


def attempt_path(out: Path, job: str, attempt: int) -> str:
    """Return the path of an attempt's directory."""
    return f"{out}/items/{directory_name(job)}/attempt-{attempt}"


_PLAIN: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


def directory_name(job: str) -> str:
    """Return a directory name for a job: its id, or a similar name if the id is not usable."""
    if len(job) <= LONGEST and _PLAIN.fullmatch(job):
        return job
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", job[:LONGEST]).lstrip(".")
    return f"{plain}~{hashlib.sha256(job.encode('utf-8', 'replace')).hexdigest()[:12]}"
