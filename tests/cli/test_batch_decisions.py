"""Commands of a batch that did not end well run again or wait for a decision."""

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.cli.command import COMMAND, environment, run_command
from tests.cli.test_batch import write_jobs

LONGEST = 120
PUSH = "echo pushed >> done; "


def line(tmp_path: Path) -> dict[str, Any]:
    (found,) = (tmp_path / "runs/jobs/results.jsonl").read_text().splitlines()
    result: dict[str, Any] = json.loads(found)
    return result


def batch(tmp_path: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    return run_command("batch", "jobs.jsonl", *flags, cwd=tmp_path, env=environment(tmp_path))


def pushed(tmp_path: Path) -> int:
    return (tmp_path / "done").read_text().count("pushed")


def kill_within(tmp_path: Path, *flags: str) -> None:
    """Kill a batch while its one command runs."""
    (tmp_path / "began").unlink(missing_ok=True)
    command = [*COMMAND, "batch", "jobs.jsonl", *flags]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(tmp_path), stderr=subprocess.DEVNULL
    ) as process:
        until = time.monotonic() + LONGEST
        while not (tmp_path / "began").exists():
            assert time.monotonic() < until
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait(LONGEST)


def test_a_command_that_was_killed_with_its_batch_is_run_again_only_on_request(
    tmp_path: Path,
) -> None:
    command = PUSH + "touch began; test -e may || exec sleep 1000"
    write_jobs(tmp_path, command, options={"shell": True})
    kill_within(tmp_path)
    for _ in range(2):
        ran = batch(tmp_path)
        assert ran.returncode == 3, ran.stderr
        assert "shell cannot resume a session; --retry-from fresh starts it over" in ran.stderr
        assert (line(tmp_path)["status"], line(tmp_path)["side_effects"]) == ("failed", True)
        assert pushed(tmp_path) == 1
    planned = batch(tmp_path, "--dry-run")
    assert "job-1: waits for a decision (--retry-from)" in planned.stdout
    assert "1 job (1 waiting for a decision (--retry-from));" in planned.stderr
    (tmp_path / "may").touch()
    ran = batch(tmp_path, "--only", "job-1", "--retry-from", "fresh")
    assert ran.returncode == 0, ran.stderr
    assert pushed(tmp_path) == 2
    assert line(tmp_path)["status"] == "completed"


def test_a_command_that_was_killed_is_not_run_again_with_another_store(tmp_path: Path) -> None:
    command = PUSH + "touch began; test -e may || exec sleep 1000"
    write_jobs(tmp_path, command, options={"shell": True})
    kill_within(tmp_path, "--store", "night.db")
    planned = batch(tmp_path, "--dry-run")  # it opens no store
    assert (planned.returncode, planned.stdout[:21]) == (0, "job-1: would resume w"), planned.stderr
    for flags in ([], ["--store", "other.db"]):
        ran = batch(tmp_path, *flags)
        assert ran.returncode == 1, ran.stderr
        assert "1 job needs to continue" in ran.stderr
        assert f"Run the batch with {tmp_path}/night.db (--store)" in ran.stderr
        assert pushed(tmp_path) == 1
    assert "--retry-from fresh" in batch(tmp_path, "--store", "night.db").stderr
    assert pushed(tmp_path) == 1
    (tmp_path / "may").touch()
    ran = batch(tmp_path, "--retry-from", "fresh")
    assert ran.returncode == 0, ran.stderr
    assert pushed(tmp_path) == 2


def test_a_command_that_was_killed_again_after_the_decision_waits_for_another(
    tmp_path: Path,
) -> None:
    write_jobs(tmp_path, PUSH + "touch began; exec sleep 1000", options={"shell": True})
    kill_within(tmp_path)
    kill_within(tmp_path, "--retry-from", "fresh")
    assert pushed(tmp_path) == 2
    assert batch(tmp_path).returncode == 3
    assert pushed(tmp_path) == 2


def test_a_command_that_failed_by_itself_is_run_again_by_the_same_command(tmp_path: Path) -> None:
    write_jobs(tmp_path, PUSH + "exit 7", options={"shell": True})
    for number in (1, 2):
        ran = batch(tmp_path, "--retries", "3")
        assert ran.returncode == 3
        assert "--retry-from" not in line(tmp_path)["failure"]["message"]
        assert (line(tmp_path)["exit_code"], line(tmp_path)["side_effects"]) == (7, True)
        assert pushed(tmp_path) == number


def test_a_kind_of_failure_that_is_to_be_retried_does_not_repeat_a_command_by_itself(
    tmp_path: Path,
) -> None:
    write_jobs(tmp_path, PUSH + "exit 7", options={"shell": True})
    flags = ["--retry-on", "process_exited", "--retries", "1"]
    ran = batch(tmp_path, *flags)
    assert "--retry-from fresh starts it over" in ran.stderr
    assert pushed(tmp_path) == 1
    batch(tmp_path, *flags, "--retry-from", "fresh")
    assert pushed(tmp_path) == 3
