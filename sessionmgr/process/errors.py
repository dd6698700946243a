"""Errors of starting and running child processes."""

from __future__ import annotations

import os

from sessionmgr.errors import SessionmgrError

_MOST_SHOWN = 200


class ProcessError(SessionmgrError):
    """Something about child processes."""


class CommandInvalid(ProcessError, ValueError):
    """A command that no system could start."""

    def __init__(self, why: str) -> None:
        super().__init__(f"this command cannot be started: {why}")


class EnvironmentVariableInvalid(ProcessError, ValueError):
    """A variable that the environment of a child may not hold."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"a child's environment may not set {name}: {why}")
        self.name = name


class SessionIdInvalid(ProcessError, ValueError):
    """What was given as the id of a provider's session cannot be one."""

    def __init__(self, given: str, why: str) -> None:
        super().__init__(f"{given[:80]!r} cannot be the id of a session: {why}")
        self.given = given


class InputFull(ProcessError):
    """A child has not read what it was sent before; nothing more was accepted."""

    def __init__(self, waiting: int, limit: int) -> None:
        super().__init__(
            f"the child does not read: {waiting} bytes wait to be written to it, of at most {limit}"
        )
        self.waiting = waiting
        self.limit = limit


class DescriptorsExhausted(ProcessError):
    """One more child would leave too few file descriptors; nothing was started."""

    def __init__(self, limit: int, in_use: int, needed: int, reserve: int) -> None:
        super().__init__(
            f"too few file descriptors for one more child: {in_use} of {limit} are in use, "
            f"it needs {needed}, and {reserve} are kept free; run fewer at once, or raise the "
            "limit (ulimit -n, LimitNOFILE= of systemd)"
        )
        self.limit = limit
        self.in_use = in_use
        self.needed = needed
        self.reserve = reserve


class SpawnFailed(ProcessError):
    """The system would not start a program: `path` is what it was about, `errno` the reason."""

    def __init__(self, what: str, path: str, errno: int) -> None:
        shown = path if len(path) <= _MOST_SHOWN else f"{path[:_MOST_SHOWN]}…"
        super().__init__(f"{what}: {shown!r} ({os.strerror(errno)})")
        self.path = path
        self.errno = errno


class ProgramNotFound(SpawnFailed):
    """There is no such program; or there is, and the interpreter that it names is not."""


class NotExecutable(SpawnFailed):
    """There is such a file, and it cannot be run."""


class NoSuchDirectory(SpawnFailed):
    """There is no such directory to run a program in, or we may not enter it."""


class SpawnerKilled(ProcessError):
    """Whoever was to start a child was killed meanwhile; what had begun was ended."""

    def __init__(self, program: str) -> None:
        super().__init__(f"the guard of {program!r} was killed while it started it")
        self.program = program


class LauncherFailed(ProcessError):
    """Nothing can be started any more."""

    def __init__(self, why: str) -> None:
        super().__init__(f"no child can be started: {why}")
        self.why = why
