"""The installed command at a pseudo-terminal: typing, resizing, reading the screen."""

import codecs
import fcntl
import os
import select
import signal
import struct
import subprocess
import termios
import time
import uuid
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.cli.command import COMMAND, environment
from tests.cli.terminal_emulator import EmulatedScreen

PATIENCE = 60.0
MARK = "TEST_MARK"


class PseudoTerminal:
    """A command at a terminal of a given size."""

    def __init__(
        self, argv: list[str], columns: int, rows: int, cwd: Path, env: Mapping[str, str]
    ) -> None:
        self.columns, self.rows = columns, rows
        self.screen = EmulatedScreen(columns, rows)
        self.said = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._fd, theirs = os.openpty()
        self._set_size(theirs)
        self.process = subprocess.Popen(
            argv,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=cwd,
            env=env,
            preexec_fn=lambda: os.login_tty(os.dup(theirs)),
        )
        os.close(theirs)

    def _set_size(self, fd: int) -> None:
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", self.rows, self.columns, 0, 0))

    def resize(self, columns: int, rows: int) -> None:
        """Resize the terminal; the kernel notifies the command."""
        self.columns, self.rows = columns, rows
        self.screen.resize(columns, rows)
        self._set_size(self._fd)

    def type(self, text: str) -> None:
        """Type a text; a 3 is Ctrl-C, a 4 Ctrl-D."""
        os.write(self._fd, text.encode())

    def wait_for(self, text: str, *, count: int = 1) -> None:
        """Read until the text has appeared `count` times."""
        deadline = time.monotonic() + PATIENCE
        while self.said.count(text) < count:
            if not self._read(deadline):
                raise AssertionError(f"{text!r} was not said:\n{self.said}")

    def wait_for_screen(self, text: str) -> None:
        """Read until the screen shows the text."""
        deadline = time.monotonic() + PATIENCE
        while not any(text in line for line in self.screen.lines()):
            if not self._read(deadline):
                shown = "\n".join(self.screen.lines())
                raise AssertionError(f"{text!r} is not to be seen:\n{shown}")

    def wait(self) -> int:
        """Read to the end and return the exit code."""
        deadline = time.monotonic() + PATIENCE
        while self._read(deadline):
            pass
        return self.process.wait(max(0.1, deadline - time.monotonic()))

    def _read(self, deadline: float) -> bool:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([self._fd], [], [], left)[0]:
            raise AssertionError(f"nothing more is said:\n{self.said}")
        try:
            data = os.read(self._fd, 65536)
        except OSError:  # EIO: the other end is closed
            return False
        text = self._decoder.decode(data)  # a character may come in pieces
        self.said += text
        self.screen.feed(text)
        return bool(data)

    def hang_up(self) -> None:
        """Close the terminal: the command gets a SIGHUP and can print nothing more."""
        os.close(self._fd)
        self._fd = -1

    def close(self) -> None:
        """Kill the command if it still runs."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(PATIENCE)
        if self._fd >= 0:
            os.close(self._fd)


@contextmanager
def at_terminal(
    *args: str,
    home: Path,
    columns: int = 80,
    rows: int = 24,
    env: Mapping[str, str] | None = None,
) -> Generator[PseudoTerminal]:
    """Run the command at a terminal, in a temporary home, with additional variables."""
    made = environment(home, **{"TERM": "xterm-256color", **(env or {})})
    for name in ("NO_COLOR", "COLUMNS", "LINES"):
        made.pop(name, None)
    terminal = PseudoTerminal([*COMMAND, *args], columns, rows, home, made)
    try:
        yield terminal
    finally:
        terminal.close()


def stop(pid: int) -> None:
    """Stop a process with SIGSTOP, and wait until it has stopped."""
    os.kill(pid, signal.SIGSTOP)
    deadline = time.monotonic() + PATIENCE
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        assert time.monotonic() < deadline
        time.sleep(0.001)


def unique_seconds() -> str:
    """Return a number of seconds that identifies a `sleep` process."""
    return f"9{uuid.uuid4().int % 10**12:012}"


def processes_with(mark: str) -> list[str]:
    """Return the command lines of all processes with the mark among their words."""
    found: list[str] = []
    for directory in Path("/proc").iterdir():
        if directory.name.isdecimal() and directory.name != str(os.getpid()):
            try:
                words = (directory / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue  # it has just ended
            if mark in words:
                found.append(" ".join(words))
    return found


def assert_no_process_left(mark: str) -> None:
    """Wait until no process with the mark is left."""
    deadline = time.monotonic() + PATIENCE
    while left := processes_with(mark):
        assert time.monotonic() < deadline, left
        time.sleep(0.01)
