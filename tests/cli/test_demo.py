"""The demo needs no agent, ends as described, and leaves a store for inspection."""

import json
import re
from pathlib import Path

from tests.cli.command import environment, run_command
from tests.cli.pseudo_terminal import assert_no_process_left, at_terminal


def bare(home: Path) -> dict[str, str]:
    """Return an environment with the system's programs only, and without keys."""
    return environment(home, TMPDIR=str(home), PATH="/usr/bin:/bin", ANTHROPIC_API_KEY="")


def test_the_demo_tells_of_a_crash_a_hang_a_denial_and_a_cancellation(tmp_path: Path) -> None:
    store = ["--store", str(tmp_path / "my.db")]
    ran = run_command("demo", "--json", *store, env=bare(tmp_path))
    assert ran.returncode == 0, ran.stderr
    assert len([json.loads(line) for line in ran.stdout.splitlines()]) == 24
    for line in (
        "✓ flaky-network completed on attempt 2",
        "✗ endless-loop timed out: the deadline of 3 s has passed",
        "! tidy-up was denied Bash: rm -rf build (nothing is deleted here)",
        "✗ wrong-branch cancelled: user, sessionmgr cancel, by the demo",
    ):
        assert line in ran.stderr.splitlines()
    assert "22 of 24 jobs completed, 1 cancelled, 1 timed out, 1 with denials (in " in ran.stderr
    assert "Traceback" not in ran.stderr
    (place,) = tmp_path.glob("sessionmgr-demo-*")
    assert json.loads((place / "summary.json").read_text())["duration"] > 3
    # The named store is the only one.
    assert set(tmp_path.rglob("*.db")) == {tmp_path / "my.db", place / "ledger.db"}

    typed = re.search(r"details \(.*\): +sessionmgr (.*)", ran.stderr)
    assert typed is not None
    looked = run_command(*typed[1].split(), env=bare(tmp_path))
    # The hint names the last job that failed, and the order of the failures varies.
    told = {"timed": "✗ endless-loop timed out", "cancelled": "✗ wrong-branch cancelled"}
    last = max(told, key=lambda word: ran.stderr.index(told[word]))
    assert (looked.returncode, last in looked.stdout) == (0, True)
    listed = run_command("sessions", "--json", *store, env=bare(tmp_path))
    assert len(listed.stdout.splitlines()) >= 24


def test_ctrl_c_stops_the_demo_in_order(tmp_path: Path) -> None:
    with at_terminal("demo", home=tmp_path, env=bare(tmp_path)) as terminal:
        terminal.wait_for_screen("fix-login")
        terminal.type("\x03")
        assert terminal.wait() == 130
    assert re.search(r"Ctrl-C: stopping \d running jobs?; press Ctrl-C again", terminal.said)
    assert_no_process_left("df")
    (place,) = tmp_path.glob("sessionmgr-demo-*")
    assert set(tmp_path.rglob("*.db")) == {place / "demo.db", place / "ledger.db"}
