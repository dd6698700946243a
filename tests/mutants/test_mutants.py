"""Patches of mutants: each applies to the present sources and leaves valid Python."""

import shutil
from pathlib import Path

import pytest

from tests.mutants.mutant import Mutant, copy_package, mutants

MUTANTS = mutants()

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="patches are applied by git")


def test_there_are_at_least_ten_mutants_and_each_says_what_it_breaks() -> None:
    assert len(MUTANTS) >= 10
    assert all(mutant.summary.endswith(".") for mutant in MUTANTS)
    assert len({mutant.summary for mutant in MUTANTS}) == len(MUTANTS)


@needs_git
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_can_be_made_of_the_present_sources(mutant: Mutant, tmp_path: Path) -> None:
    copy_package(tmp_path)
    before = sources(tmp_path)
    assert mutant.apply(tmp_path) == ""
    after = sources(tmp_path)
    changed = [path for path in after if after[path] != before[path]]
    assert changed
    for path in changed:
        compile(after[path], str(path), "exec")


def sources(root: Path) -> dict[Path, str]:
    """Read every module below `root`."""
    return {path: path.read_text(encoding="utf-8") for path in root.rglob("*.py")}
