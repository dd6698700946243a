"""Odd paths, and places that are gone or full, lead to messages, not to crashes."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import COMMAND, environment
from tests.cli.command_terminal import CommandTerminal
from tests.cli.stored_runs import store_runs

PREFIX = "sessionmgr: error: "


@pytest.mark.parametrize("store", ["/", ".", ".."])
@pytest.mark.parametrize("verb", [["run", "-p", "shell", "echo x"], ["sessions"]])
def test_a_store_that_is_a_directory_is_refused(
    terminal: CommandTerminal, store: str, verb: list[str]
) -> None:
    code, out, err = terminal.bare(*verb, "--store", store)
    assert (code, out) == (1, "")
    assert err == (
        f"{PREFIX}{store} cannot hold a store (it is a directory); "
        "choose a file in a directory that exists (--store PATH)"
    )


def in_a_deleted_directory(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a deleted directory."""
    place = tmp_path / "gone"
    place.mkdir()
    script = f'rmdir "{place}"; exec "$@"'
    return subprocess.run(
        ["/bin/sh", "-c", script, "sh", *COMMAND, *words],
        cwd=place,
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=240,
    )


def test_what_is_stored_can_be_looked_at_from_a_deleted_directory(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    store_runs(store)
    ran = in_a_deleted_directory(tmp_path, "sessions", "--json", "--store", str(store))
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_a_run_in_a_deleted_directory_is_refused_in_words(tmp_path: Path) -> None:
    store = str(tmp_path / "runs.db")
    ran = in_a_deleted_directory(tmp_path, "run", "-p", "shell", "echo x", "--store", store)
    said = "the working directory has been deleted: change to another one (cd DIR)"
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, "", f"{PREFIX}{said}\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("verb", [["run", "-p", "shell", "echo x"], ["batch", "jobs.jsonl"]])
def test_a_full_disk_under_stderr_ends_nothing(tmp_path: Path, verb: list[str]) -> None:
    (tmp_path / "jobs.jsonl").write_text('{"id": "a", "provider": "shell", "prompt": "echo x"}')
    store = str(tmp_path / "runs.db")
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(
            [*COMMAND, *verb, "--store", store],
            cwd=tmp_path,
            env=environment(tmp_path),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=full,
            encoding="utf-8",
            check=False,
            timeout=240,
        )
    assert ran.returncode == 0
    if verb[0] == "run":
        assert ran.stdout == "x\n"
    else:
        (line,) = (tmp_path / "runs" / "jobs" / "results.jsonl").read_text().splitlines()
        assert json.loads(line)["status"] == "completed"


@pytest.mark.parametrize(
    "flag", ["--prompt-file", "--system-prompt-file", "--schema", "--env-file"]
)
def test_a_file_that_never_ends_is_refused(terminal: CommandTerminal, flag: str) -> None:
    prompt = [] if flag == "--prompt-file" else ["x"]
    code, out, err = terminal("run", "-p", "claude", *prompt, flag, "/dev/zero")
    assert (code, out, err) == (1, "", f"{PREFIX}{flag}: /dev/zero is larger than 10 MiB")


@pytest.mark.parametrize(
    ("field", "path", "said"),
    [
        ("prompt_file", "/dev/zero", "prompt_file: /dev/zero is not a regular file"),
        ("prompt_file", "large", "prompt_file: large is larger than 10 MiB (32.0 MiB)"),
        ("prompt_file", ".", "prompt_file: . is a directory"),
        ("images", "/dev/zero", "images: /dev/zero is not a regular file"),
    ],
)
def test_a_file_of_a_job_that_never_ends_is_refused(
    terminal: CommandTerminal, field: str, path: str, said: str
) -> None:
    with Path("large").open("wb") as file:
        file.truncate(32 * 1024 * 1024)
    job: dict[str, object] = {"id": "a", "provider": "claude"}
    job |= {"prompt_file": path} if field == "prompt_file" else {"prompt": "x", "images": [path]}
    Path("jobs.jsonl").write_text(json.dumps(job))
    code, out, err = terminal("batch", "jobs.jsonl", "--dry-run")
    assert (code, out, err) == (1, "", f"{PREFIX}jobs.jsonl:1: {said}")


def test_a_prompt_may_come_from_a_pipe(tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("there is no bash here")
    command = " ".join(COMMAND)
    ran = subprocess.run(
        ["bash", "-c", f"{command} run -q -p shell --prompt-file <(echo echo x) --store x.db"],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=240,
    )
    assert (ran.returncode, ran.stdout) == (0, "x\n"), ran.stderr
