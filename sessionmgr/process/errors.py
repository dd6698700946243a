"""Errors of starting and running child processes."""

from __future__ import annotations

import os

from sessionmgr.errors import SessionmgrError

_MOST_SHOWN = 200


class ProcessError(SessionmgrError):
    """Base class of errors of child processes."""


class CommandInvalid(ProcessError, ValueError):
    """The command is invalid on every system; nothing was started."""

    def __init__(self, why: str) -> None:
        super().__init__(f"invalid command: {why}")


class EnvironmentVariableInvalid(ProcessError, ValueError):
    """The environment of a child cannot contain this variable."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"a child's environment cannot contain {name}: {why}")
        self.name = name


class SessionIdInvalid(ProcessError, ValueError):
    """The text cannot be the id of a provider's session."""

    def __init__(self, given: str, why: str) -> None:
        super().__init__(f"invalid session id {given[:80]!r}: {why}")
        self.given = given


class InputFull(ProcessError):
    """The child has not read its earlier input; the new data was not accepted."""

    def __init__(self, waiting: int, limit: int) -> None:
        super().__init__(
            f"the child does not read its input: {waiting} of at most {limit} bytes are waiting"
        )
        self.waiting = waiting
        self.limit = limit


class DescriptorsExhausted(ProcessError):
    """One more child would leave too few file descriptors; nothing was started."""

    def __init__(self, limit: int, in_use: int, needed: int, reserve: int) -> None:
        super().__init__(
            f"too few file descriptors for one more child: {in_use} of {limit} are in use, "
            f"it needs {needed}, and {reserve} are kept free; start fewer at once, or raise the "
            "limit (ulimit -n, LimitNOFILE= of systemd)"
        )
        self.limit = limit
        self.in_use = in_use
        self.needed = needed
        self.reserve = reserve


class SpawnFailed(ProcessError):
    """The system refused to start a program: `path` is the file concerned, `errno` the reason."""

    def __init__(self, what: str, path: str, errno: int) -> None:
        shown = path if len(path) <= _MOST_SHOWN else f"{path[:_MOST_SHOWN]}…"
        super().__init__(f"{what}: {shown!r} ({os.strerror(errno)})")
        self.path = path
        self.errno = errno


class ProgramNotFound(SpawnFailed):
    """The program does not exist, or the interpreter that its first line names does not."""


class NotExecutable(SpawnFailed):
    """The file exists and cannot be executed."""


class NoSuchDirectory(SpawnFailed):
    """The directory to run the program in does not exist, or is not accessible."""


class SpawnerKilled(ProcessError):
    """The process that was starting a child was killed; the unfinished start was ended."""

    def __init__(self, program: str) -> None:
        super().__init__(
            f"{program!r} was not started: the process that was starting it was killed"
        )
        self.program = program


class LauncherFailed(ProcessError):
    """The launcher cannot start children any more."""

    def __init__(self, why: str) -> None:
        super().__init__(f"cannot start child processes: {why}")
        self.why = why
