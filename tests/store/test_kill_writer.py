"""`kill -9` at any moment: what was acknowledged is there, and the laws hold."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_fifty_kills_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.store.kill_writer", str(tmp_path / "s.db"), "50", "1"],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["kills"] == 50
    assert figures["events stored"] > 1000
