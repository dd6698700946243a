"""Capture files: a launcher that records what each child reads and writes.

Each child gets a file of JSON lines, in the form in which recordings are played: `t`, seconds since
its start; `dir`, the direction (`>` to stdin, `<` from stdout, `!` from stderr, `#` a note about
the child); and the data, `msg` if it is JSON and else `line`. The files are private to the user and
contain secrets unredacted. Entries are omitted, with a note, only if the disk hangs.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec
import trio

from sessionmgr.model import UnreadableJson, parse_json
from sessionmgr.process.private_modes import make_private_directory

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable

    from outcome import Outcome

    from sessionmgr.model import Json
    from sessionmgr.process.command import Command
    from sessionmgr.process.exit_report import ExitReport, ProgramExit
    from sessionmgr.process.launcher import ChildTree, Launcher

log: Final = logging.getLogger("sessionmgr.process")

Direction: TypeAlias = Literal[">", "<", "!", "#"]
LONGEST: Final = 16 * 1024 * 1024
"""Maximum bytes of one entry; a longer line is written in pieces."""
ROOM: Final = 16 * 1024 * 1024
"""Maximum number of bytes that wait for the disk."""
GRACE: Final = 5.0
"""Time limit in seconds for writing the rest at the end."""
_NUMBERS: Final = count(1)  # of this process: several launchers may write files to one directory


class CaptureLauncher:
    """Launcher that starts children by another launcher and records their pipes in a directory."""

    def __init__(self, within: Launcher, directory: Path) -> None:
        self._within: Final = within
        self._directory: Final = directory

    async def spawn(self, command: Command) -> ChildTree:
        """Start a child; see `Launcher.spawn`."""
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{next(_NUMBERS)}"
        path = self._directory / f"{name}-{Path(command.argv[0]).name}.jsonl"
        closed = _ThreadEvent()
        open_file = partial(CaptureFile, path, began=trio.current_time(), closed=closed.announce)
        capture = await trio.to_thread.run_sync(open_file)
        try:
            tree = await self._within.spawn(command)
        except BaseException as error:
            capture.record_note({"argv": list(command.argv), "not_started": str(error)})
            capture.close()
            await closed.wait()  # shielded and bounded in there  # noqa: ASYNC102
            raise
        capture.record_note({"argv": list(command.argv), "cwd": command.cwd, "pid": tree.pid})
        return CaptureTree(tree, capture, closed)


class _ThreadEvent:
    """Event that a thread sets."""

    def __init__(self) -> None:
        self._token: Final = trio.lowlevel.current_trio_token()
        self._event: Final = trio.Event()

    def announce(self) -> None:
        """Set the event, from any thread."""
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self._event.set)

    async def wait(self) -> None:
        """Wait for the event, but only for a limited time if the disk hangs."""
        with trio.move_on_after(GRACE, shield=True):
            await self._event.wait()


class CaptureFile:
    """Capture file of one child: the event loop adds entries, and a thread writes them.

    Up to `ROOM` bytes wait for the disk. Entries that exceed it are omitted, and the file records
    how many.
    """

    def __init__(
        self,
        path: Path,
        *,
        began: float | None = None,
        closed: Callable[[], None] | None = None,
    ) -> None:
        """Open the file and start a thread that writes the entries and calls `closed` at the end.

        Without `closed`, the entries are written at once.
        """
        make_private_directory(path.parent)
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
        self._file: Final[IO[bytes]] = os.fdopen(os.open(path, flags, 0o600), "wb")
        self._path: Final = path
        self._closed: Final = closed
        self._started_at: Final = trio.current_time() if began is None else began
        self._partial: Final = {"<": bytearray(), ">": bytearray(), "!": bytearray()}
        self._lock: Final = threading.RLock()
        """Protects the state that the loop and the thread share: all below."""
        self._waiting: Final[deque[bytes]] = deque()
        self._size = 0
        self._left_out = 0
        self._is_writing = self._is_closed = False

    def record_note(self, msg: Json) -> None:
        """Add an entry about the child."""
        self._write({"dir": "#", "msg": msg})

    def record_data(self, direction: Direction, data: bytes | bytearray | memoryview) -> None:
        """Add entries for the lines that `data` completes."""
        text = self._partial[direction]
        text += data
        if b"\n" not in data and len(text) < LONGEST:
            return
        *lines, rest = text.split(b"\n")
        for line in lines:
            self._line(direction, bytes(line))
        if len(rest) >= LONGEST:
            self._line(direction, bytes(rest), note="a piece of a line")
            rest = bytearray()
        self._partial[direction] = rest

    def record_end(self, direction: Direction) -> None:
        """Record that a pipe has ended."""
        rest, self._partial[direction] = self._partial[direction], bytearray()
        if rest:
            self._line(direction, bytes(rest), note="without a newline")

    def close(self) -> None:
        """Write the remaining entries and close the file."""
        if self._is_closed:
            return
        for direction in (">", "<", "!"):
            self.record_end(direction)
        with self._lock:
            self._note_left_out()
            self._is_closed = True
            self._start()

    def _line(self, direction: Direction, line: bytes, note: str | None = None) -> None:
        entry: dict[str, Json] = {"dir": direction}
        read = (
            parse_json(line) if line[:1] in b"{[" and direction != "!" else UnreadableJson("", "")
        )
        if isinstance(read, UnreadableJson):
            entry["line"] = line.decode("utf-8", "replace")
        else:
            entry["msg"] = read
        if note is not None:
            entry["note"] = note
        self._write(entry)

    def _write(self, entry: dict[str, Json]) -> None:
        with self._lock:
            if self._is_closed:
                return
            if self._size >= ROOM:
                self._left_out += 1
                return
            self._note_left_out()
            self._queue(entry)
            self._start()

    def _note_left_out(self) -> None:
        if self._left_out:
            self._queue({"dir": "#", "msg": {"left_out": self._left_out}})
            self._left_out = 0

    def _queue(self, entry: dict[str, Json]) -> None:
        entry = {"t": round(trio.current_time() - self._started_at, 3), **entry}
        data = msgspec.json.encode(entry) + b"\n"
        self._waiting.append(data)
        self._size += len(data)

    def _start(self) -> None:
        if self._is_writing:
            return
        self._is_writing = True
        if self._closed is None:
            self._write_all()
            return
        try:
            trio.lowlevel.start_thread_soon(self._write_all, _unwrap)
        except RuntimeError as error:  # the system has no room for another thread
            self._give_up(str(error))
            self._close_file()

    def _write_all(self) -> None:
        """Write waiting entries until there are none."""
        while data := self._next():
            try:
                self._file.write(data)
                self._file.flush()
            except OSError as error:
                self._give_up(error.strerror or str(error))
            with self._lock:
                self._size -= len(data)

    def _next(self) -> bytes:
        with self._lock:
            data = b"".join(self._waiting)
            self._waiting.clear()
            if not data:
                self._is_writing = False
                if self._is_closed:
                    self._close_file()
            return data

    def _close_file(self) -> None:
        with suppress(OSError):  # its remaining bytes cannot be written
            self._file.close()
        if self._closed is not None:
            self._closed()

    def _give_up(self, why: str) -> None:
        """Stop capturing: a run must not fail because of its copy."""
        log.warning("A capture file ended early. path=%s error=%s", self._path, why)
        with self._lock:
            self._is_closed = True
            self._waiting.clear()


def _unwrap(outcome: Outcome[None]) -> None:
    """Report an unexpected error of this thread as any thread does."""
    outcome.unwrap()


class CaptureTree:
    """Child tree whose pipes are recorded."""

    def __init__(self, within: ChildTree, capture: CaptureFile, closed: _ThreadEvent) -> None:
        self._within: Final = within
        self._capture: Final = capture
        self._closed: Final = closed
        self._is_over = False
        stdin = within.stdin
        self.stdin: Final = None if stdin is None else _CaptureSendStream(stdin, capture)
        self.stdout: Final = _CaptureReceiveStream(within.stdout, capture, "<")
        self.stderr: Final = _CaptureReceiveStream(within.stderr, capture, "!")

    @property
    def pid(self) -> int:
        """Process id of the program."""
        return self._within.pid

    @property
    def id(self) -> str:
        """Id of the tree, which its processes carry as their tag."""
        return self._within.id

    @property
    def is_over(self) -> bool:
        """Whether the tree is known to be over."""
        return self._within.is_over

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program alone."""
        self._capture.record_note({"signal": number.name})
        self._within.signal(number)

    def kill(self) -> None:
        """Begin to kill the whole tree."""
        self._capture.record_note({"signal": "SIGKILL"})
        self._within.kill()

    async def wait_exit(self) -> ProgramExit:
        """Wait for the end of the program."""
        return await self._within.wait_exit()

    async def wait_empty(self) -> ExitReport:
        """Wait until the tree is empty."""
        return self._over(await self._within.wait_empty())

    async def abandon(self) -> ExitReport:
        """Give up waiting for a killed tree."""
        return self._over(await self._within.abandon())

    async def aclose(self) -> None:
        """Close the pipes and release the tree."""
        try:
            await self._within.aclose()
        finally:
            self._capture.close()
            await self._closed.wait()  # shielded and bounded in there  # noqa: ASYNC102

    def _over(self, report: ExitReport) -> ExitReport:
        if not self._is_over:
            self._is_over = True
            self._capture.record_note(
                {"exit_code": report.exit_code, "signal": report.signal, "forced": report.forced}
            )
        return report


class _CaptureSendStream(trio.abc.SendStream):
    def __init__(self, within: trio.abc.SendStream, capture: CaptureFile) -> None:
        self._within: Final = within
        self._capture: Final = capture

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        self._capture.record_data(">", data)
        await self._within.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._within.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        self._capture.record_end(">")
        await self._within.aclose()


class _CaptureReceiveStream(trio.abc.ReceiveStream):
    def __init__(
        self, within: trio.abc.ReceiveStream, capture: CaptureFile, direction: Direction
    ) -> None:
        self._within: Final = within
        self._capture: Final = capture
        self._direction: Final[Direction] = direction

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        data = await self._within.receive_some(max_bytes)
        if data:
            self._capture.record_data(self._direction, data)
        else:
            self._capture.record_end(self._direction)
        return data

    async def aclose(self) -> None:
        self._capture.record_end(self._direction)
        await self._within.aclose()
