"""Commands of the mutation tests: limits count CPU time, and a test must fail twice."""

import sys
from pathlib import Path

import pytest

from tests.mutants.run import run

ROOT = Path(__file__).parents[2]


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


async def test_a_command_says_what_it_says_and_how_it_ended(tmp_path: Path) -> None:
    assert await run(python("print('so'); exit(3)"), tmp_path, 60) == (3, "so\n")


async def test_a_command_that_works_for_too_long_has_no_end(tmp_path: Path) -> None:
    program = "print('so', flush=True)\nwhile True: pass"
    assert await run(python(program), tmp_path, 0.5) == (None, "so\n")


async def test_a_command_that_does_nothing_has_no_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.mutants.run.IDLE", 1.0)
    program = "import threading; threading.Event().wait()"
    assert await run(python(program), tmp_path, 60) == (None, "")


async def test_a_test_has_failed_if_it_does_so_twice(tmp_path: Path) -> None:
    (tmp_path / "test_two.py").write_text(
        "seen = []\n"
        "def test_once(tmp_path):\n"
        "    seen.append(tmp_path)\n"
        "    assert len(seen) > 1\n"
        "async def test_each_time(): assert not seen\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider"]
    command += ["-o", "trio_mode=true", "-p", "tests.mutants.twice", "test_two.py"]
    code, output = await run(command, tmp_path, 60, str(ROOT))
    assert (code, "1 failed, 1 passed" in output) == (1, True), output
    assert "FAILED test_two.py::test_each_time" in output
