"""The golden files: traffic of real agents, recorded by tests/real."""

from pathlib import Path

import pytest

from sessionmgr.testing.player import Recording

GOLDEN = Path(__file__).parents[2] / "golden"
FILES = sorted(GOLDEN.rglob("*.jsonl"))


def test_there_are_golden_files() -> None:
    assert len(FILES) > 20


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(GOLDEN)))
def test_a_golden_file_says_whose_it_is_and_knows_no_machine(file: Path) -> None:
    recording = Recording.read(file)
    about = recording.entries[0].msg
    assert isinstance(about, dict)
    assert file.relative_to(GOLDEN).parts[:2] == (about["agent"], about["version"])
    assert any(entry.dir == "<" for entry in recording.entries)
    text = file.read_text(encoding="utf-8")
    assert '"/root' not in text
    assert '"/tmp' not in text
    assert '"/home' not in text
