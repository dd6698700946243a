"""Why an actor, or any other child, ended: exit reasons as plain data."""

from __future__ import annotations

from typing import Final

import msgspec


class Normal(msgspec.Struct, frozen=True):
    """It had finished its work."""

    def __str__(self) -> str:
        return "normal"


class Shutdown(msgspec.Struct, frozen=True):
    """It was asked to stop, and did. `detail` is the asker's own word."""

    detail: object = None

    def __str__(self) -> str:
        return "shutdown" if self.detail is None else f"shutdown ({self.detail})"


class Killed(msgspec.Struct, frozen=True):
    """It was ended without grace, or its grace ran out."""

    def __str__(self) -> str:
        return "killed"


class Crashed(msgspec.Struct, frozen=True):
    """An exception left it. The exception keeps its traceback, and so all its frames."""

    error: BaseException

    def __str__(self) -> str:
        text = str(self.error)
        return f"crashed ({type(self.error).__name__}{': ' * bool(text)}{text})"


class NoProc(msgspec.Struct, frozen=True):
    """Nobody was there: it had ended before anyone asked, or never was."""

    def __str__(self) -> str:
        return "no such actor"


ExitReason = Normal | Shutdown | Killed | Crashed | NoProc

NORMAL: Final = Normal()
SHUTDOWN: Final = Shutdown()
KILLED: Final = Killed()
NOPROC: Final = NoProc()


PlainReason = type[Normal] | type[Shutdown] | type[Killed] | type[NoProc]


def as_reason(given: ExitReason | PlainReason) -> ExitReason:
    """Take a reason as users give it: `Normal` stands for `Normal()`.

    Raises:
        TypeError: it is no reason.
    """
    reason = given() if isinstance(given, type) else given
    if not isinstance(reason, ExitReason):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"{given!r} is no exit reason: Normal(), Shutdown(detail), …")
    return reason


def cause_of(reason: ExitReason) -> BaseException | None:
    """Give the exception behind `reason`, where there is one."""
    return reason.error if isinstance(reason, Crashed) else None
