"""`--capture DIR`: record the agents' input and output in files."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from sessionmgr.cli.config.paths import make_private_directory
from sessionmgr.cli.errors import CommandLineInvalid

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from sessionmgr.process import Launcher


@asynccontextmanager
async def capturing_launcher(directory: Path | None) -> AsyncGenerator[Launcher | None, None]:
    """Open a launcher for `open_manager` that records all traffic; None without a directory.

    Raises:
        CommandLineInvalid: The directory cannot be created.
    """
    if directory is None:
        yield None
        return
    from sessionmgr.process import CaptureLauncher, open_launcher

    try:
        make_private_directory(directory)
    except OSError as error:
        why = f"{error.strerror or error}; choose another directory"
        raise CommandLineInvalid(f"--capture: {directory}: {why}") from error
    async with open_launcher() as launcher:
        yield CaptureLauncher(launcher, directory)
