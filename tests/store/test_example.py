"""The example of the conformance suite runs, for a store from outside of this library."""

import subprocess
import sys
import textwrap
from pathlib import Path

import sessionmgr.testing.store_conformance

ROOT = Path(__file__).parents[2]

BEFORE = """
from contextlib import asynccontextmanager

import pytest

from sessionmgr.store import MemoryStore
from sessionmgr.testing.store_conformance import STORE_BEHAVIOURS


class MyStore(MemoryStore):
    pass


@asynccontextmanager
async def open_my_store():
    yield MyStore()

"""


def test_the_three_lines_of_the_docstring_test_a_store(tmp_path: Path) -> None:
    said = sessionmgr.testing.store_conformance.__doc__ or ""
    example = [line for line in said.splitlines() if line.startswith("    ")]
    assert len(example) == 3
    (tmp_path / "pytest.ini").write_text("[pytest]\ntrio_mode = true\n")
    (tmp_path / "test_mine.py").write_text(BEFORE + textwrap.dedent("\n".join(example)) + "\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py"]
    path = {"PYTHONPATH": str(ROOT), "PATH": ""}
    done = subprocess.run(
        command, cwd=tmp_path, env=path, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stdout
    behaviours = sessionmgr.testing.store_conformance.STORE_BEHAVIOURS
    assert f"{len(behaviours)} passed" in done.stdout
