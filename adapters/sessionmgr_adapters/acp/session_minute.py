"""The wait before an agent loads a session in the minute in which it was begun.

An agent may name the file of a session by the minute in which it begins it, and begin one anew when
it loads a session. In the same minute that is the same file, whose messages are lost.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import trio

from sessionmgr.model import ErrorOccurred, Failure, FailureKind

if TYPE_CHECKING:
    from sessionmgr.adapter import RunContext

MARGIN: Final = 0.5
"""Seconds to wait beyond the end of the minute."""
SHOWN: Final = 3.0
"""Seconds of waiting from which an event reports it."""
ALIVE: Final = 1.0
"""Seconds between two signs of life."""


def _wall_clock() -> datetime:
    return datetime.now(UTC)


CLOCK: Final[Callable[[], datetime]] = _wall_clock
"""The clock by which the agent names its files, in UTC."""


class SessionFiles(msgspec.Struct, frozen=True):
    """The files of an agent's sessions, named by the minute in which each was begun."""

    homes: tuple[str, ...]
    """Variables that name the directory of the files; the first that is set counts."""
    pattern: str
    """Their paths below it, with `{id}` for the beginning of the session's id."""
    minute: str
    """The beginning of a file's name, with the minute in terms of `strftime`."""
    id_length: int
    """Characters of the session's id in the name."""

    def of_session(self, session: str, env: Mapping[str, str]) -> list[Path]:
        """Return the first file of a session in each directory: the later ones are empty."""
        home = next((env[name] for name in self.homes if env.get(name)), None)
        if home is None:
            return []
        pattern = self.pattern.format(id=glob.escape(session[: self.id_length]))
        found = sorted(Path(home).glob(pattern), reverse=True)
        return [*{path.parent: path for path in found}.values()]


def seconds_to_wait(files: SessionFiles, session: str, env: Mapping[str, str]) -> float:
    """Return the seconds until a session can be loaded; 0 if it was begun in another minute."""
    now = CLOCK()
    minute = now.strftime(files.minute)
    if not any(path.name.startswith(minute) for path in files.of_session(session, env)):
        return 0.0
    return 60.0 - now.second - now.microsecond / 1e6 + MARGIN


async def wait_for_minute(run: RunContext, seconds: float) -> None:
    """Wait until the minute has passed, with signs of life; report a wait that is not short."""
    await trio.lowlevel.checkpoint()
    if seconds >= SHOWN:
        message = (
            f"the agent is asked for the session in {seconds:.0f} s, because it would lose one "
            "that was begun in the same minute"
        )
        failure = Failure(kind=FailureKind.SESSION_BUSY, message=message, phase="start")
        run.emit_nowait(ErrorOccurred(failure=failure, severity="warning"))
    end = trio.current_time() + seconds
    while (left := end - trio.current_time()) > 0:
        await trio.sleep(min(left, ALIVE))
        run.alive()
