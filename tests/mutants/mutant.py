"""A mutant: a small mistake put into the package, as a patch, that some test must notice.

Each `*.patch` here begins with a sentence that says what it breaks, and a line `First:` with
the test modules that are tried before the others. Those in `manager/` are for the simulation to
find. After an edit of the sources that a patch no longer fits, make the same mistake by hand, and
keep `git diff -U2` of it.
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
    """One mistake."""

    path: Path
    says: str
    first: list[str]

    @property
    def name(self) -> str:
        return self.path.relative_to(HERE).with_suffix("").as_posix()

    @property
    def is_simulated(self) -> bool:
        """Whether the simulation is to find it, and not the tests of otp."""
        return self.path.parent.name == "manager"

    def apply(self, root: Path) -> str:
        """Make the mistake in the sources below `root`; give what git has against it, if so."""
        # Not the repository around `root`, should there be one.
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
    """Give all there are, by name."""
    return [read(path) for path in sorted(HERE.rglob("*.patch"))]


def read(path: Path) -> Mutant:
    """Read what stands above the patch."""
    says, first, *_ = path.read_text(encoding="utf-8").splitlines()
    assert first.startswith("First: "), path
    return Mutant(path, says, first.removeprefix("First: ").split())


def copy_package(root: Path) -> None:
    """Put the package, as it is imported here, below `root`."""
    assert sessionmgr.__file__ is not None
    shutil.copytree(
        Path(sessionmgr.__file__).parent,
        root / "sessionmgr",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
