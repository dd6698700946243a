"""If the reader does not read, the first Ctrl-C ends the output."""

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command import COMMAND, environment, sessionmgr

MANY = "seq 1 60000"
WITH_SHELL = ("--option", "shell=true", "--option", "timeout=300")


def interrupted(argv: list[str], place: Path, is_on: Callable[[], bool] = lambda: True) -> int:
    """Start a command without a reader of its output, and interrupt it once when it is stuck."""
    ours, theirs = os.pipe()
    try:
        with subprocess.Popen(
            [*COMMAND, *argv],
            env=environment(place),
            cwd=place,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=subprocess.DEVNULL,
        ) as process:
            try:
                bound = time.monotonic() + 120
                while not (is_full(theirs) and is_on()):
                    assert process.poll() is None
                    assert time.monotonic() < bound
                    time.sleep(0.02)
                process.send_signal(signal.SIGINT)
                return process.wait(timeout=60)
            finally:
                process.kill()
    finally:
        os.close(ours)
        os.close(theirs)


def is_full(pipe: int) -> bool:
    """Return whether a writer of the pipe would block."""
    return not select.select([], [pipe], [], 0)[1]


@pytest.fixture
def session(tmp_path: Path) -> str:
    """Return a session that has more to print than a pipe holds."""
    words = ("run", "-q", "-p", "shell", *WITH_SHELL, MANY)
    assert sessionmgr(*words, env=environment(tmp_path)).returncode == 0
    listed = sessionmgr("sessions", "--json", env=environment(tmp_path)).stdout
    found: str = json.loads(listed.splitlines()[0])["id"]
    return found


@pytest.mark.parametrize("verb", ["events", "export"])
def test_the_first_ctrl_c_ends_what_prints_the_record(
    verb: str, session: str, tmp_path: Path
) -> None:
    assert interrupted([verb, session, "--json"], tmp_path) == 130


def test_the_first_ctrl_c_ends_a_run_and_its_command(tmp_path: Path) -> None:
    argv = ["run", "-p", "shell", *WITH_SHELL, f"echo $$ > pid; {MANY}; sleep 300"]
    assert interrupted(argv, tmp_path, (tmp_path / "pid").exists) == 130
    runs = sessionmgr("sessions", "--json", env=environment(tmp_path)).stdout
    assert json.loads(runs.splitlines()[0])["status"] == "cancelled"
    assert not is_alive(int((tmp_path / "pid").read_text()))


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_first_ctrl_c_ends_a_batch(tmp_path: Path) -> None:
    options = {"shell": True, "timeout": 300}
    jobs = [
        {"id": "many", "prompt": MANY, "options": options},
        {"id": "long", "prompt": "sleep 300", "options": options},
    ]
    (tmp_path / "jobs.jsonl").write_text("".join(json.dumps(each) + "\n" for each in jobs))
    argv = ["batch", "jobs.jsonl", "-p", "shell", "--json"]
    assert interrupted(argv, tmp_path) == 130
    summary = json.loads((tmp_path / "runs/jobs/summary.json").read_bytes())
    assert summary["statuses"] == {"completed": 1, "cancelled": 1}
