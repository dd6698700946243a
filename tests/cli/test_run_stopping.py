"""The installed verb `run`: Ctrl-C, signals, messages from elsewhere, readers that go away."""

import json
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.command import COMMAND
from tests.cli.command_terminal import CommandTerminal
from tests.cli.pseudo_terminal import (
    assert_no_process_left,
    at_terminal,
    processes_with,
    stop,
    unique_seconds,
)
from tests.cli.stored_runs import block_store_writes


def test_ctrl_c_ends_the_run_and_its_processes_and_says_so(tmp_path: Path) -> None:
    number = unique_seconds()
    with at_terminal("run", "-p", "shell", f"sleep {number}", home=tmp_path) as terminal:
        terminal.wait_for("· bash: sleep")
        terminal.type("\x03")
        assert terminal.wait() == 130, terminal.said
    assert "Ctrl-C: stopping the run; press Ctrl-C again to kill it" in terminal.said
    assert "cancelled: user, Ctrl-C" in terminal.said, terminal.said
    assert_no_process_left(number)


def test_after_ctrl_c_it_is_said_how_to_go_on_and_that_works(
    env: dict[str, str], prompt: CommandTerminal, tmp_path: Path
) -> None:
    with at_terminal(
        "run", "-p", "scripted", '[{"do": "hang"}]', home=tmp_path, env=env
    ) as terminal:
        terminal.wait_for(": scripted")
        terminal.type("\x03")
        assert terminal.wait() == 130
    typed = re.search(r"to continue: sessionmgr (resume run_\w+)", terminal.said)
    assert typed is not None, terminal.said
    code, out, err = prompt.bare(*typed[1].split(), "Hello again")
    assert (code, out) == (0, "Hello again"), err


def test_ctrl_c_twice_leaves_at_once_and_leaves_no_process(tmp_path: Path) -> None:
    number = unique_seconds()
    command = f"trap '' TERM; sleep {number} & wait; sleep {number}"
    store = tmp_path / "state/sessionmgr/sessionmgr.db"
    words = ["run", "-p", "shell", "--option", "shell=true", command]
    with at_terminal(*words, home=tmp_path) as terminal:
        terminal.wait_for("· bash:")
        while not processes_with(number):
            time.sleep(0.01)
        with block_store_writes(store):  # the run cannot end before the second Ctrl-C
            terminal.type("\x03")
            terminal.wait_for("press Ctrl-C again")
            terminal.type("\x03")
            assert terminal.wait() == 130
    assert "stopped at once" in terminal.said
    assert "cancelled" not in terminal.said
    assert_no_process_left(number)


WAITS = "echo first; until [ -e go ]; do sleep 0.02; done"


def running(
    env: dict[str, str],
    place: Path,
    command: str,
    *flags: str,
    stderr: int | None = subprocess.PIPE,
) -> subprocess.Popen[str]:
    """Start a run of a shell command whose output this process reads."""
    return subprocess.Popen(
        [*COMMAND, "run", *flags, "-p", "shell", "--option", "shell=true", command],
        env=env,
        cwd=place,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        encoding="utf-8",
    )


def test_what_it_is_reported_meanwhile_is_done_before_it_leaves(
    env: dict[str, str], prompt: CommandTerminal, tmp_path: Path
) -> None:
    with running(env, tmp_path, WAITS) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "first\n"
        assert process.stderr is not None
        while not (found := re.match(r"(run_\w+): shell", process.stderr.readline())):
            assert process.poll() is None  # it may first report that it waits for the store
        run = found[1]
        for text in ("echo second", "echo third; exit 4"):
            _, said, err = prompt.bare("append", run, text)
            assert "the message is queued for" in said, err
        (tmp_path / "go").touch()
        out, err = process.communicate(timeout=60)
    assert out == "second\nthird\n"
    assert process.returncode == 3, err


def test_what_it_is_reported_is_shown_though_it_is_over_before_it_can_be(
    env: dict[str, str], prompt: CommandTerminal, tmp_path: Path
) -> None:
    # More than a pipe holds: the output stops until the reader continues.
    flood = "echo first; yes flood | head -n 60000; until [ -e go ]; do sleep 0.02; done"
    with running(env, tmp_path, flood, "-q", stderr=None) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "first\n"
        _, said, _ = prompt.bare("sessions", "--json")
        run = json.loads(said)["run_id"]
        _, said, err = prompt.bare("append", run, "echo second; exit 4")
        (second,) = re.findall(r"as (run_\w+)", said) or [err]
        (tmp_path / "go").touch()
        prompt.bare("events", second, "--follow")
        out = process.stdout.read()  # includes what arrived with the first line
    assert out == "flood\n" * 60000 + "second\n"
    assert process.returncode == 3


def struck(env: dict[str, str], seconds: str, *numbers: signal.Signals) -> str:
    """Run `sleep`, send it several signals at the same moment, and return its messages."""
    with subprocess.Popen(
        [*COMMAND, "run", "-p", "shell", f"sleep {seconds}"],
        env=env,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        assert process.stderr is not None
        while "· bash" not in process.stderr.readline():
            assert process.poll() is None
        stop(process.pid)
        for number in (*numbers, signal.SIGCONT):
            process.send_signal(number)
        said = process.stderr.read()
        assert process.wait(60) == 130
    return said


@pytest.mark.parametrize(
    "numbers", [(signal.SIGINT, signal.SIGTERM), (signal.SIGTERM, signal.SIGHUP)]
)
def test_signals_that_come_at_once_are_one(
    numbers: tuple[signal.Signals, ...], env: dict[str, str]
) -> None:
    said = struck(env, unique_seconds(), *numbers)
    assert "cancelled: user" in said
    assert "details: " in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_as_good_as_ctrl_c(number: signal.Signals, env: dict[str, str]) -> None:
    seconds = unique_seconds()
    assert f"cancelled: user, {number.name}" in struck(env, seconds, number)
    assert_no_process_left(seconds)


def test_a_reader_that_goes_away_ends_the_run(env: dict[str, str], tmp_path: Path) -> None:
    number = unique_seconds()
    command = f"echo one; until [ -e gone ]; do sleep 0.02; done; echo two; sleep {number}"
    with running(env, tmp_path, command) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "one\n"
        process.stdout.close()
        (tmp_path / "gone").touch()
        said = process.stderr.read()
        assert process.wait(60) == 3
    assert "the reader of its output is gone" in said
    assert_no_process_left(number)
