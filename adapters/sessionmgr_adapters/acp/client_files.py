"""Files that an agent reads and writes through its client: only those of the session.

A path is resolved with its links, and must then be inside the session's directories.
"""

from __future__ import annotations

import os
import stat
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.adapter import ApprovalRequest
from sessionmgr.adapter.kit import is_protected
from sessionmgr_adapters.acp.answers import file_answer
from sessionmgr_adapters.acp.client_requests import (
    DENIED,
    INVALID_PARAMS,
    NOT_FOUND,
    ClientRefusal,
)

if TYPE_CHECKING:
    from sessionmgr.model import Json
    from sessionmgr_adapters.acp.client_requests import GrantedCalls
    from sessionmgr_adapters.acp.frames import ReadFileRequest, WriteFileRequest

MAX_FILE_BYTES: Final = 10 * 1024 * 1024


class ClientFiles:
    """The files of one run's session."""

    def __init__(self, granted: GrantedCalls) -> None:
        self._granted: Final = granted

    async def read(self, request: ReadFileRequest) -> Json:
        """Answer with the text of a file, or with some of its lines.

        Raises:
            ClientRefusal: The file is outside of the session, cannot be read, or is too large.
        """
        path = await self._resolve(request.path)
        try:
            data = await trio.to_thread.run_sync(_read, str(path))
            if len(data) > MAX_FILE_BYTES:
                raise ClientRefusal(
                    INVALID_PARAMS, f"{request.path}: larger than {MAX_FILE_BYTES} bytes"
                )
            text = data.decode()
        except FileNotFoundError:
            raise ClientRefusal(NOT_FOUND, f"{request.path}: no such file") from None
        except (OSError, UnicodeDecodeError) as error:
            raise ClientRefusal(INVALID_PARAMS, f"{request.path}: {error}") from None
        return file_answer(_selected_lines(text, request.line, request.limit))

    async def write(self, request: WriteFileRequest) -> Json:
        """Write a file, if the permission mode or the caller allows it.

        Raises:
            ClientRefusal: It was denied, or the file is outside of the session or not writable.
        """
        path = await self._resolve(request.path)
        if len(request.content) > MAX_FILE_BYTES:
            raise ClientRefusal(
                INVALID_PARAMS, f"{request.path}: longer than {MAX_FILE_BYTES} characters"
            )
        directories = self._granted.directories
        guarded = is_protected(request.path, directories) or is_protected(str(path), directories)
        question = ApprovalRequest(
            tool_name="write_text_file",
            tool_input={"path": request.path, "content": request.content},
            effect="other" if guarded else "edit",
            paths=(str(path),),
        )
        await self._granted.require(question, request.path, str(path))
        # A link may have been put in place while the question was open.
        if await self._resolve(request.path) != path:
            raise ClientRefusal(DENIED, f"{request.path}: it has become a link")
        try:
            await path.parent.mkdir(parents=True, exist_ok=True)
            data = request.content.encode(errors="replace")
            await trio.to_thread.run_sync(_write, str(path), data)
        except OSError as error:
            raise ClientRefusal(INVALID_PARAMS, f"{request.path}: {error}") from None
        return {}

    async def _resolve(self, path: str) -> trio.Path:
        """Return a path without links, which is inside the session's directories."""
        await trio.lowlevel.checkpoint()
        if not PurePath(path).is_absolute() or "\0" in path:
            raise ClientRefusal(INVALID_PARAMS, f"path: not an absolute path: {path!r}")
        real = PurePath(await trio.to_thread.run_sync(os.path.realpath, path))
        for directory in self._granted.directories:
            if real.is_relative_to(await trio.to_thread.run_sync(os.path.realpath, directory)):
                return trio.Path(real)
        raise ClientRefusal(DENIED, f"{path}: outside of the session's directories")


def _read(path: str) -> bytes:
    """Return a file's content, up to one byte more than the limit."""
    with os.fdopen(_open(path, os.O_RDONLY), "rb") as file:
        return file.read(MAX_FILE_BYTES + 1)


def _write(path: str, data: bytes) -> None:
    with os.fdopen(_open(path, os.O_WRONLY | os.O_CREAT), "wb") as file:
        file.truncate()
        file.write(data)


def _open(path: str, flags: int) -> int:
    """Open a regular file: a pipe would be waited for, and a link may lead anywhere.

    Raises:
        OSError: It is none, or cannot be opened.
    """
    opened = os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise OSError("not a regular file")
    return opened


def _selected_lines(text: str, line: int | None, limit: int | None) -> str:
    if line is None and limit is None:
        return text
    first = max((line or 1) - 1, 0)
    lines = text.splitlines(keepends=True)[first:]
    return "".join(lines if limit is None else lines[: max(limit, 0)])
