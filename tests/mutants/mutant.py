"""A mutant: a small mistake put into the package, as a patch, that some test must detect.

Each `*.patch` begins with a sentence that says what it breaks, and a line `First:` with the test
modules to run before the others. The simulation must detect those in `manager/`. If a patch no
longer fits the sources, make the same mistake by hand and store the output of `git diff -U1`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import sessionmgr

HERE = Path(__file__).parent


class Mutant(NamedTuple):
    """One mistake, read from a patch."""

    path: Path
    summary: str
    first: list[str]

    @property
    def name(self) -> str:
        return self.path.relative_to(HERE).with_suffix("").as_posix()

    @property
    def is_simulated(self) -> bool:
        """Whether the simulation must detect it, instead of the tests of otp."""
        return self.path.parent.name == "manager"

    def apply(self, root: Path) -> str:
        """Apply the patch to the sources below `root`; return git's error message, or ""."""
        # git must not use a repository that contains `root`.
        environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(root.parent)}
        ran = subprocess.run(
            ["git", "apply", "--whitespace=nowarn", str(self.path)],
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        return ran.stderr.strip() if ran.returncode else ""


def mutants() -> list[Mutant]:
    """Return all mutants, sorted by path."""
    return [read(path) for path in sorted(HERE.rglob("*.patch"))]


def read(path: Path) -> Mutant:
    """Read the two lines above a patch."""
    summary, first, *_ = path.read_text(encoding="utf-8").splitlines()
    assert first.startswith("First: "), path
    return Mutant(path, summary, first.removeprefix("First: ").split())


def copy_package(root: Path) -> None:
    """Copy the imported package to `root`."""
    assert sessionmgr.__file__ is not None
    shutil.copytree(
        Path(sessionmgr.__file__).parent,
        root / "sessionmgr",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
