"""How a child ended, and what became of its tree."""

from __future__ import annotations

from enum import Enum

import msgspec


class ExitKind(Enum):
    """In what way it came to an end."""

    EXITED = "exited"
    """The program ended, and so did all that it had started."""
    LEFT_DESCENDANTS = "left_descendants"
    """The program ended; something that it had started lived on and was killed."""
    CLOSED_STDOUT = "closed_stdout"
    """It had closed its standard output and lived on, until it was ended."""
    STILL_RUNNING = "still_running"
    """It ran, until it was ended."""
    LOST = "lost"
    """Its guard was killed: nobody was there to see how all of it ended."""


class EmptyProof(Enum):
    """How it is known that nothing of the tree is left."""

    NO_CHILD = "no_child"
    """Its guard has no child any more (ECHILD): the proof."""
    SWEPT = "swept"
    """Its guard was killed; no process that carries its mark was found any more."""
    GROUP_GONE = "group_gone"
    """Its process group is gone. What left the group is not known of: the direct launcher."""
    UNPROVED = "unproved"
    """It is not: see `left_running`."""


class LeftRunning(msgspec.Struct, frozen=True, kw_only=True):
    """A process of the tree that could not be reached."""

    pid: int
    name: str
    uid: int


class ProgramExit(msgspec.Struct, frozen=True, kw_only=True):
    """The end of the program itself. Both are None if nobody saw it."""

    exit_code: int | None = None
    signal: int | None = None


class ExitReport(msgspec.Struct, frozen=True, kw_only=True):
    """What is known when a tree is over."""

    exit_code: int | None
    signal: int | None
    ending: ExitKind
    forced: bool
    """Whether TERM or KILL was sent to something that lived."""
    killed_by_os: bool
    """Whether the program died of a SIGKILL or SIGTERM that we did not send."""
    emptied: EmptyProof
    left_running: tuple[LeftRunning, ...] = ()
