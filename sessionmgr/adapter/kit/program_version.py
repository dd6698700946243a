"""Checks of a provider's program: whether it is installed, and whether its version is too old."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.adapter import Health
from sessionmgr.adapter.kit.run_end import config_failure
from sessionmgr.model import Failure
from sessionmgr.process import (
    Command,
    Escalation,
    NotStartedError,
    PipePump,
    find_program,
    open_tree,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sessionmgr.process import Launcher
    from sessionmgr.wire import Line


VERSION_TIMEOUT: Final = 10.0
_LADDER: Final = Escalation(polite=0.0, term=0.5)
_VERSION: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)")


def missing_program_reason(
    command: Sequence[str], env: Mapping[str, str], cwd: str, remedy: str
) -> Health | None:
    """Return the problem if a command's program is missing or not executable, else None."""
    program = command[0] if command else ""
    path = env.get("PATH", os.defpath)
    try:
        find_program(os.fsencode(program), os.fsencode(path), os.fsencode(cwd))
    except NotStartedError as error:
        if error.what == b"executable":
            found = os.fsdecode(error.path)
            return Health(state="fail", detail=f"{found} cannot be executed; {remedy}")
        where = "" if "/" in program else " on PATH"
        return Health(state="skip", detail=f"program {program!r} not found{where}; {remedy}")
    return None


def version_numbers(version: str | None) -> tuple[int, ...] | None:
    """Return the numbers of a version, for comparison."""
    found = _VERSION.search(version or "")
    return None if found is None else tuple(map(int, found.groups()))


def outdated_failure(program: str, version: str | None, oldest: tuple[int, ...]) -> Failure | None:
    """Return the failure for a version that is too old; None if it is not."""
    found = version_numbers(version)
    if found is not None and found >= oldest:
        return None
    least = ".".join(map(str, oldest))
    return config_failure(
        f"{program} {version or '(unknown version)'} is too old; install {least} or newer"
    )


async def read_version(launcher: Launcher, program: Sequence[str], like: Command) -> str:
    """Return the first line of `program --version`; "" if it prints none.

    Raises:
        ProcessError: The program could not be started.
    """
    output: list[str] = []

    def take(lines: Sequence[Line]) -> None:
        output.extend(line.decode(errors="replace") for line in lines if isinstance(line, bytes))

    command = Command(argv=(*program, "--version"), cwd=like.cwd, env=like.env, stdin=False)
    pump = PipePump(take)
    async with open_tree(launcher, command, escalation=_LADDER) as tree:
        with trio.move_on_after(VERSION_TIMEOUT):
            await pump.run(
                stdin=tree.stdin, stdout=tree.stdout, stderr=tree.stderr, exited=tree.wait_exit
            )
    return output[0] if output else ""
