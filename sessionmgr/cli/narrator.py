"""How a story is told, line by line, on a terminal, into a pipe or into a file."""

import logging
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final, TextIO

import trio

WHO_WIDTH: Final = 10
INDENT: Final = "   "

Writer = Callable[[str, str], None]


class Narrator:
    """Write the lines of a story, each with its time since the story began.

    When the reader has gone away (`sessionmgr demo | head -3`) it falls silent and sets `lost`.
    """

    def __init__(self, out: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self.lost = trio.Event()
        self._write = coloured_writer(out) or plain_writer(out)
        self._clock = clock
        self._began = clock()

    def title(self, text: str) -> None:
        """Open a chapter."""
        self._line("", "")
        self._line(text, "bold")

    def explain(self, text: str) -> None:
        """Say something beside the story: what to look at, or what it meant."""
        for line in text.splitlines():
            self._line(INDENT + line, "")

    def show(self, text: str) -> None:
        """Print `text` as it is, set off from the rest."""
        for line in text.splitlines():
            self._line(INDENT * 2 + line, "cyan")

    def tell(self, who: str, what: str, style: str = "") -> None:
        """Say that `who` does `what` now."""
        elapsed = self._clock() - self._began
        self._line(f"{INDENT}{elapsed:4.1f} s  {who:<{WHO_WIDTH}}  {what}", style)

    def _line(self, text: str, style: str) -> None:
        if self.lost.is_set():
            return
        try:
            self._write(text, style)
        except BrokenPipeError:
            self.lost.set()


class LogTeller(logging.Handler):
    """Tell each log record as part of the story: what a line has room for, and no traceback."""

    def __init__(self, narrator: Narrator) -> None:
        super().__init__(logging.INFO)
        self._narrator = narrator

    def emit(self, record: logging.LogRecord) -> None:
        """Tell one record."""
        self._narrator.tell("log", in_short(record), "yellow")


def in_short(record: logging.LogRecord) -> str:
    """Say a record of the library's in few words, and any other in its own."""
    match vars(record):
        case {"event": event, "child": child, "reason": reason}:
            return f"{event}: {child}, {reason}"
        case _:
            return record.getMessage()


@contextmanager
def log_told_by(narrator: Narrator, name: str) -> Generator[None]:
    """Hand the log lines of the logger `name` to the narrator and to nobody else, for a while."""
    logger = logging.getLogger(name)
    before = logger.level, logger.propagate
    teller = LogTeller(narrator)
    logger.addHandler(teller)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(teller)
        logger.setLevel(before[0])
        logger.propagate = before[1]


def plain_writer(out: TextIO) -> Writer:
    """Make a writer of bare lines, each flushed, since a pipe would hold them back."""

    def write(text: str, style: str) -> None:
        del style
        print(text, file=out, flush=True)

    return write


def coloured_writer(out: TextIO) -> Writer | None:
    """Make a writer in colour, where there is a terminal and rich is installed."""
    if not out.isatty():
        return None
    try:
        from rich.console import Console
        from rich.text import Text
    except ImportError:
        return None
    console = Console(file=out, highlight=False)

    def write(text: str, style: str) -> None:
        console.print(Text(text, style), soft_wrap=True)

    return write


def standard_output() -> TextIO:
    """Return stdout, made to replace what its encoding cannot hold instead of dying of it."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")
    return sys.stdout
