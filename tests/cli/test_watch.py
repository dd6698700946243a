"""`watch` shows a run of another process until the run or the watcher ends."""

import json
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from sessionmgr.testing.scripted_provider import Ask, Fail, Hang, Hear, Say, Tool
from tests.cli.command import COMMAND, environment
from tests.cli.command_terminal import CommandTerminal
from tests.cli.stored_runs import RunOwner, open_run_owner, store_runs
from tests.manager.harness import run_scripted


@contextmanager
def watching(owner: RunOwner, home: Path) -> Generator["subprocess.Popen[str]"]:
    """Watch a run in a process of its own, with both streams in one pipe."""
    words = [*COMMAND, "watch", owner.session_id, "--store", str(owner.store)]
    with subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        env=environment(home),
    ) as watcher:
        try:
            yield watcher
        finally:
            watcher.kill()


def until(watcher: "subprocess.Popen[str]", words: str) -> list[str]:
    """Read lines until one of them contains these words."""
    assert watcher.stdout is not None
    lines: list[str] = []
    for line in watcher.stdout:
        lines.append(line.rstrip("\n"))
        if words in line:
            return lines
    raise AssertionError("\n".join(lines))


def test_an_ended_run_is_shown_and_its_exit_code_is_returned(terminal: CommandTerminal) -> None:
    done, failed = store_runs(
        terminal.store,
        run_scripted(Tool(name="Bash", input={"command": "ls"}), Say(text="Hello", deltas=3)),
        run_scripted(Fail(message="no more")),
    )
    for name in (done.id, done.session_id):
        code, out, err = terminal("watch", name)
        assert (code, out) == (0, "Hello")
        assert "· Bash: ls" in err
        assert "completed (" in err
    code, out, err = terminal("watch", failed.id)
    assert (code, out) == (3, "")
    assert "failed: provider_error: no more" in err
    assert f"sessionmgr show {failed.id}" in err


def test_the_events_of_a_run_are_printed_as_json(terminal: CommandTerminal) -> None:
    (done,) = store_runs(terminal.store, run_scripted(Say(text="Hello")))
    code, out, err = terminal("watch", done.id, "--json")
    assert (code, err) == (0, "")
    types = [json.loads(line)["type"] for line in out.splitlines()]
    assert types[-1] == "run_completed"
    assert "message_received" in types


def test_a_running_run_is_watched_to_its_end(terminal: CommandTerminal, tmp_path: Path) -> None:
    with (
        open_run_owner(tmp_path, Say(text="ready"), Hear()) as owner,
        watching(owner, tmp_path) as watcher,
    ):
        until(watcher, "ready")
        assert terminal("append", owner.run_id, "hello from afar")[0] == 0
        until(watcher, "hello from afar")
        until(watcher, "completed (")
        assert watcher.wait() == 0


def test_a_question_is_shown_with_the_way_to_answer_it(
    terminal: CommandTerminal, tmp_path: Path
) -> None:
    question = Ask(tool="Bash", input={"command": "rm -rf build"})
    with (
        open_run_owner(tmp_path, question, Say(text="done"), asks=True) as owner,
        watching(owner, tmp_path) as watcher,
    ):
        until(watcher, "? asks for Bash: rm -rf build")
        (line,) = until(watcher, "to answer: ")
        approval_id = line.split()[4]
        assert terminal("approve", approval_id, "allow")[0] == 0
        until(watcher, "done")
        assert watcher.wait() == 0


def test_a_signal_ends_the_watching_and_not_the_run(
    terminal: CommandTerminal, tmp_path: Path
) -> None:
    with (
        open_run_owner(tmp_path, Say(text="ready"), Hang()) as owner,
        watching(owner, tmp_path) as watcher,
    ):
        until(watcher, "ready")
        watcher.send_signal(signal.SIGINT)
        until(watcher, f"stopped watching; {owner.run_id} continues")
        until(watcher, f"to end it: sessionmgr cancel {owner.run_id}")
        assert watcher.wait() == 130
        code, out, _ = terminal("cancel", owner.run_id)
        assert (code, out) == (0, f"{owner.run_id}: is being cancelled")


def test_a_run_whose_process_is_gone_is_watched_no_longer(
    terminal: CommandTerminal, tmp_path: Path
) -> None:
    with open_run_owner(tmp_path, Say(text="so far"), Hang()) as owner:
        owner.process.kill()
        owner.process.wait()
        code, _, err = terminal("watch", owner.run_id)
        assert code == 3
        assert f"the process that owned {owner.run_id} has ended" in err
