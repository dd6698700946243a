"""Error messages and exit codes of commands that end with an exception.

A mistake of the user becomes one line. Any other exception is a bug in sessionmgr: its traceback is
stored in a file, and printed only with `-v`.
"""

from __future__ import annotations

import sys
import traceback
from typing import TYPE_CHECKING, Final, cast

from sessionmgr.cli.terminal.stdout import ReaderGoneError, drop_stdout
from sessionmgr.errors import SessionmgrError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

WRONG: Final = 1
INTERRUPTED: Final = 130


def report_error(error: BaseException, words: Sequence[str]) -> int:
    """Print an error, and return the exit code."""
    leaves = list(_leaves(error))
    if any(isinstance(each, KeyboardInterrupt) for each in leaves):
        return INTERRUPTED
    if all(isinstance(each, ReaderGoneError) for each in leaves):
        drop_stdout()
        return 0
    mistakes = [each for each in leaves if isinstance(each, SessionmgrError | OSError)]
    if len(mistakes) == len(leaves):
        for each in dict.fromkeys(map(_error_text, mistakes)):
            for line in each.splitlines():
                print_error(line)
        return WRONG
    print_error(_report_bug(error, leaves, verbose=any(_is_verbose(word) for word in words)))
    return WRONG


def print_error(message: str) -> None:
    """Print a line on stderr, if it is open."""
    from sessionmgr.cli.terminal.safe_text import one_line

    try:
        sys.stderr.write(f"sessionmgr: error: {one_line(message)}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return  # stderr is closed; the exit code still reports the failure


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _leaves(each)
    else:
        yield error


def _error_text(error: BaseException) -> str:
    if isinstance(error, FileNotFoundError) and not error.filename and _is_directory_gone():
        return "the working directory has been deleted: change to another one (cd DIR)"
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename is not None else ""
        return f"{where}{error.strerror}"
    return str(error) or type(error).__name__


def _is_directory_gone() -> bool:
    from sessionmgr.cli.config.paths import find_working_directory

    return find_working_directory() is None


def _is_verbose(word: str) -> bool:
    return word == "--verbose" or (word.startswith("-v") and set(word[1:]) == {"v"})


def _report_bug(error: BaseException, leaves: Sequence[BaseException], *, verbose: bool) -> str:
    what = f"this is a bug in sessionmgr: {type(leaves[0]).__name__}: {leaves[0]}"
    text = "".join(traceback.format_exception(error))
    if verbose:
        sys.stderr.write(text)
        return what
    try:
        path = _save_traceback(text)
    except OSError as refused:
        return f"{what}; its traceback could not be stored ({refused}): -v prints it"
    return f"{what}; its traceback is in {path}, and -v prints it"


def _save_traceback(text: str) -> Path:
    import os
    import time

    from sessionmgr.cli.config.paths import state_directory

    directory = state_directory()
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = directory / f"crash-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8", errors="backslashreplace")
    return path
