"""Files that can hold a prompt or a variable are private to the user under any umask."""

import json
import stat
import subprocess
import sys
from pathlib import Path

from tests.cli.command import COMMAND, environment

LOOSE = 0o022
"""The usual umask: all users may read new files."""

LIBRARY = """
import os, sys, trio
from sessionmgr import Job, open_manager, run_batch

async def main():
    async with open_manager(store="made/store/runs.db") as manager:
        job = Job(id="a", prompt="ls /nonexistent", provider="shell", permission_mode="full_auto")
        async with run_batch(manager, [job], out="made/by/program") as results:
            await results.wait()
        for each in os.scandir("made/store"):
            print(each.name, oct(each.stat().st_mode & 0o777))

trio.run(main)
"""


def loosely(*command: str, at: Path, stdin: str = "") -> str:
    done = subprocess.run(
        command,
        cwd=at,
        env=environment(at),
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=240,
        umask=LOOSE,
    )
    assert done.returncode in {0, 3}, done.stderr
    return done.stdout


def open_to_others(place: Path) -> list[str]:
    """Return the files in a directory, and the directory, that others may access."""
    return [
        f"{path} {stat.S_IMODE(path.stat().st_mode):o}"
        for path in (place, *place.rglob("*"))
        if path.stat().st_mode & 0o077
    ]


def test_all_that_commands_make_is_closed_to_others(tmp_path: Path) -> None:
    jobs: list[dict[str, object]] = [
        {"id": "good", "prompt": "sh -c 'echo hi; echo oops >&2'", "env": {"A_KEY": "s3cr3t-1234"}},
        {"id": "bad", "prompt": "ls /nonexistent"},
    ]
    lines = "".join(json.dumps({**job, "provider": "shell"}) + "\n" for job in jobs)
    made = tmp_path / "made"
    files = ["--capture", str(made / "wire"), "--log-file", str(tmp_path / "log")]
    mode = ["--permission", "full_auto"]
    loosely(
        *COMMAND, "batch", "-", "-o", str(made / "out"), *mode, *files, at=tmp_path, stdin=lines
    )
    loosely(*COMMAND, "run", "-p", "shell", "echo hi", *mode, *files, at=tmp_path)
    names = {path.name for path in made.rglob("*")}
    assert {"jobs.jsonl", "results.jsonl", "summary.json", "ledger.db", "lock", "stderr"} <= names
    assert (tmp_path / "state" / "sessionmgr" / "sessionmgr.db").exists()
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600
    assert open_to_others(made) == []
    assert open_to_others(tmp_path / "state" / "sessionmgr") == []


def test_all_that_a_program_makes_is_closed_to_others(tmp_path: Path) -> None:
    (tmp_path / "made").mkdir(mode=0o700)
    (tmp_path / "made" / "store").mkdir(mode=0o700)
    listed = loosely(sys.executable, "-c", LIBRARY, at=tmp_path).split("\n")
    assert {"runs.db 0o600", "runs.db-wal 0o600", "runs.db-shm 0o600"} <= set(listed)
    assert open_to_others(tmp_path / "made") == []
    assert open_to_others(tmp_path / "state") == []
