"""Exit reasons of actors and other children, as plain data."""

from __future__ import annotations

from typing import Final

import msgspec


class Normal(msgspec.Struct, frozen=True):
    """Exit reason of a child that finished its work."""

    def __str__(self) -> str:
        return "normal"


class Shutdown(msgspec.Struct, frozen=True):
    """Exit reason of a child that stopped on request. `detail` is the requester's explanation."""

    detail: object = None

    def __str__(self) -> str:
        return "shutdown" if self.detail is None else f"shutdown ({self.detail})"


class Killed(msgspec.Struct, frozen=True):
    """Exit reason of a child that ended without `terminate`, or exceeded its time for it."""

    def __str__(self) -> str:
        return "killed"


class Crashed(msgspec.Struct, frozen=True):
    """Exit reason of a child that raised an exception, which keeps its traceback and frames."""

    error: BaseException

    def __str__(self) -> str:
        text = str(self.error)
        return f"crashed ({type(self.error).__name__}{': ' * bool(text)}{text})"


class NoProc(msgspec.Struct, frozen=True):
    """Exit reason of a child that had already ended, or never existed."""

    def __str__(self) -> str:
        return "no such actor"


ExitReason = Normal | Shutdown | Killed | Crashed | NoProc

NORMAL: Final = Normal()
SHUTDOWN: Final = Shutdown()
KILLED: Final = Killed()
NOPROC: Final = NoProc()


PlainReason = type[Normal] | type[Shutdown] | type[Killed] | type[NoProc]


def as_reason(given: ExitReason | PlainReason) -> ExitReason:
    """Return a reason as an instance: `Normal` stands for `Normal()`.

    Raises:
        TypeError: The value is not an exit reason.
    """
    reason = given() if isinstance(given, type) else given
    if not isinstance(reason, ExitReason):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"{given!r} is not an exit reason: use Normal(), Shutdown(detail), …")
    return reason


def cause_of(reason: ExitReason) -> BaseException | None:
    """Return the exception of a crash; None for other reasons."""
    return reason.error if isinstance(reason, Crashed) else None
