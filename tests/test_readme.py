"""The README's programs run, and print what the README says they print."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import sessionmgr.adapter
import sessionmgr.portal
import sessionmgr.testing
import sessionmgr_adapters.shell
from tests.portal.child import need

README = Path(__file__).parents[1] / "README.md"
# The pages of packages are where these are installed.
KIT = Path(sessionmgr.testing.__file__).with_name("README.md")

FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Program(NamedTuple):
    where: str
    source: str
    prints: str | None


def programs(page: Path) -> list[Program]:
    """Find each python block, with the text block that comes next, if one does."""
    text = page.read_text(encoding="utf-8")
    blocks = [
        (text.count("\n", 0, m.start()) + 1, m.group(1), m.group(2)) for m in FENCED.finditer(text)
    ]
    where = "readme" if page == README else page.parent.name
    followers = [*blocks[1:], (0, "", "")]
    return [
        Program(f"{where}-line{line}", source, follower[2] if follower[1] == "text" else None)
        for (line, language, source), follower in zip(blocks, followers, strict=True)
        if language == "python"
    ]


MODEL_SERVER = KIT.parent / "model_server" / "README.md"
PORT = Path(sessionmgr.adapter.__file__).with_name("README.md")
SHELL = Path(sessionmgr_adapters.shell.__file__).with_name("README.md")
PARTS = PORT.parent / "kit" / "README.md"
PORTAL = Path(sessionmgr.portal.__file__).with_name("README.md")
PAGES = (README, KIT, MODEL_SERVER, PORT, PARTS, SHELL, PORTAL)
PROGRAMS = [program for page in PAGES for program in programs(page)]


def test_the_readme_has_programs_and_says_what_some_of_them_print() -> None:
    assert len(PROGRAMS) >= 3
    assert sum(program.prints is not None for program in PROGRAMS) >= 2


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.where)
def test_a_program_of_the_readme_does_what_the_readme_says(
    program: Program, tmp_path: Path
) -> None:
    if "fastapi" in program.source:
        need("fastapi")
    path = tmp_path / "example.py"
    path.write_text(program.source, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-X", "utf8", "-W", "error", str(path)],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")},
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=240,
    )
    assert ran.returncode == 0, ran.stderr
    if program.prints is not None:
        assert ran.stdout == program.prints
