"""If the reader does not read, the first Ctrl-C ends the output."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from sessionmgr.cli.terminal.signals import run_verb
from sessionmgr.cli.terminal.stdout import print_line
from tests.cli.command import COMMAND, environment, run_command

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
    assert run_command(*words, env=environment(tmp_path)).returncode == 0
    listed = run_command("sessions", "--json", env=environment(tmp_path)).stdout
    found: str = json.loads(listed.splitlines()[0])["id"]
    return found


@pytest.mark.parametrize("verb", ["events", "export"])
def test_the_first_ctrl_c_ends_what_prints_the_record(
    verb: str, session: str, tmp_path: Path
) -> None:
    assert interrupted([verb, session, "--json"], tmp_path) == 130


async def interrupted_before_a_write() -> int:
    signal.raise_signal(signal.SIGINT)  # trio raises it at a checkpoint
    print_line("nobody would read this")
    await trio.lowlevel.checkpoint()
    return 0


def test_ctrl_c_just_before_a_write_prevents_it(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_verb(interrupted_before_a_write)
    assert capfd.readouterr().out == ""


INTERRUPTED = """
import os, signal, sys
from sessionmgr.cli.start import start
from sessionmgr.store import SqliteStore

snapshots = SqliteStore.snapshots

async def interrupted(self, session_id):
    os.set_blocking(1, False)
    try:
        while True:
            os.write(1, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(1, True)
    signal.raise_signal(signal.SIGINT)
    return await snapshots(self, session_id)

SqliteStore.snapshots = interrupted
sys.exit(start())
"""
"""The command; when it reads the snapshots, its output is full and Ctrl-C is pressed."""


def test_ctrl_c_while_the_store_is_read_leaves_no_output_to_wait_for(tmp_path: Path) -> None:
    words = ("run", "-q", "-p", "shell", "echo x")
    assert run_command(*words, env=environment(tmp_path)).returncode == 0
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, "export", "ses_"],
        env=environment(tmp_path, PYTHONUNBUFFERED=""),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    ) as process:
        try:
            assert process.wait(timeout=60) == 130
        finally:
            process.kill()


def test_the_first_ctrl_c_ends_a_run_and_its_command(tmp_path: Path) -> None:
    argv = ["run", "-p", "shell", *WITH_SHELL, f"echo $$ > pid; {MANY}; sleep 300"]
    assert interrupted(argv, tmp_path, (tmp_path / "pid").exists) == 130
    runs = run_command("sessions", "--json", env=environment(tmp_path)).stdout
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
