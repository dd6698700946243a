"""The version of a Claude Code that does not report it when it is initialized."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.process import Command, Pump
from sessionmgr.process.ladder import Ladder, open_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.process.launcher import Launcher
    from sessionmgr.wire import Line

PATIENCE: Final = 10.0
_LADDER: Final = Ladder(polite=0.0, term=0.5)


async def version_of(launcher: Launcher, program: Sequence[str], like: Command) -> str:
    """Ask a program for its version; nothing if it does not say.

    Raises:
        ProcessError: It could not be started.
    """
    said: list[str] = []

    def take(lines: Sequence[Line]) -> None:
        said.extend(line.decode(errors="replace") for line in lines if isinstance(line, bytes))

    command = Command(argv=(*program, "--version"), cwd=like.cwd, env=like.env, stdin=False)
    pump = Pump(take)
    async with open_tree(launcher, command, ladder=_LADDER) as tree:
        with trio.move_on_after(PATIENCE):
            await pump.run(
                stdin=tree.stdin, stdout=tree.stdout, stderr=tree.stderr, exited=tree.wait_exit
            )
    return said[0] if said else ""
