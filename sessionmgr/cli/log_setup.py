"""Logging of a command: to stderr, and to a file if one is set."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from sessionmgr.cli.errors import ConfigurationInvalid
from sessionmgr.cli.terminal.safe_text import one_line, strip_controls

if TYPE_CHECKING:
    import argparse
    from collections.abc import Generator
    from pathlib import Path

FORMAT: Final = "%(asctime)s %(levelname)s %(name)s %(message)s"
LOGGER: Final = "sessionmgr"


class ShortFormatter(logging.Formatter):
    """Formatter for a terminal: one line without control characters; a traceback only if wanted."""

    def __init__(self, *, with_traceback: bool) -> None:
        super().__init__()
        self._with_traceback: Final = with_traceback

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text."""
        line = f"sessionmgr: {record.levelname.lower()}: {one_line(record.getMessage())}"
        if self._with_traceback and record.exc_info:
            line += f"\n{strip_controls(self.formatException(record.exc_info))}"
        return line


@contextmanager
def logging_configured(args: argparse.Namespace) -> Generator[None]:
    """Configure logging for the duration of a command: warnings, unless `-v` or `-q` is given."""
    logger = logging.getLogger(LOGGER)
    before = logger.level, logger.propagate
    logger.propagate = False
    terminal = logging.StreamHandler(sys.stderr)
    terminal.setLevel(_level(args.verbose, quiet=args.quiet))
    terminal.setFormatter(ShortFormatter(with_traceback=args.verbose > 1))
    ours: list[logging.Handler] = [terminal]
    logger.addHandler(terminal)
    logger.setLevel(terminal.level)
    try:
        path: Path | None = args.configuration.log_file
        if path is not None:
            try:
                ours.append(_file_handler(path, verbose=args.verbose > 0))
            except OSError as error:
                where = args.configuration.sources.get("log_file", "log_file")
                raise ConfigurationInvalid(where, f"{path}: {error.strerror or error}") from error
            logger.addHandler(ours[-1])
            logger.setLevel(min(handler.level for handler in ours))
        yield
    finally:
        for handler in ours:
            logger.removeHandler(handler)
            handler.close()
        logger.setLevel(before[0])
        logger.propagate = before[1]


def _file_handler(path: Path, *, verbose: bool) -> logging.Handler:
    os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    file = logging.FileHandler(path, encoding="utf-8", errors="backslashreplace")
    file.setLevel(logging.DEBUG if verbose else logging.INFO)
    file.setFormatter(logging.Formatter(FORMAT))
    return file


def _level(verbose: int, *, quiet: bool) -> int:
    if quiet:
        return logging.ERROR
    return (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)]
