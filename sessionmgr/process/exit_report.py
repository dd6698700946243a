"""Exit reports: how a child ended, and how its tree became empty."""

from __future__ import annotations

from enum import Enum

import msgspec


class ExitKind(Enum):
    """Way in which a tree ended."""

    EXITED = "exited"
    """The program and all its descendants ended by themselves."""
    LEFT_DESCENDANTS = "left_descendants"
    """The program ended; a descendant lived on and was killed."""
    CLOSED_STDOUT = "closed_stdout"
    """The program had closed its stdout and ran on, until it was ended."""
    STILL_RUNNING = "still_running"
    """The program ran until it was ended."""
    LOST = "lost"
    """The tree's reaper was killed, so the end of the tree was not observed."""


class EmptyProof(Enum):
    """Evidence that nothing of the tree is left."""

    NO_CHILD = "no_child"
    """The reaper has no child any more (ECHILD): a proof."""
    SWEPT = "swept"
    """The reaper was killed; a search found no process that carries the tree's tag."""
    GROUP_GONE = "group_gone"
    """The process group is gone. Processes that left the group are unknown: the direct launcher."""
    UNPROVED = "unproved"
    """There is no evidence: see `left_running`."""


class LeftRunning(msgspec.Struct, frozen=True, kw_only=True):
    """Process of the tree that could not be killed."""

    pid: int
    name: str
    uid: int


class ProgramExit(msgspec.Struct, frozen=True, kw_only=True):
    """End of the program itself. Both fields are None if it was not observed."""

    exit_code: int | None = None
    signal: int | None = None


class ExitReport(msgspec.Struct, frozen=True, kw_only=True):
    """Report about a tree that is over."""

    exit_code: int | None
    signal: int | None
    ending: ExitKind
    forced: bool
    """Whether SIGTERM or SIGKILL was sent to a living process."""
    killed_by_os: bool
    """Whether the program died of a SIGKILL or SIGTERM that this library did not send."""
    emptied: EmptyProof
    left_running: tuple[LeftRunning, ...] = ()
