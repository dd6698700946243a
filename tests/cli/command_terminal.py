"""A stand-in for a terminal: runs commands on the store `runs.db` in a temporary home."""

from pathlib import Path

import pytest

from sessionmgr.cli import main as command_line

Said = tuple[int, str, str]


class CommandTerminal:
    """Runs commands in this process, and returns their output without the last newline."""

    def __init__(self, capture: pytest.CaptureFixture[str], home: Path) -> None:
        self._capture = capture
        self.home = home
        self.store = home / "runs.db"

    def __call__(self, *words: str) -> Said:
        """Run a command on the store."""
        return self.bare(*words, "--store", str(self.store))

    def bare(self, *words: str) -> Said:
        """Run a command."""
        self._capture.readouterr()
        code = command_line.main(words)
        said = self._capture.readouterr()
        return code, said.out.rstrip("\n"), said.err.rstrip("\n")
