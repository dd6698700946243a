"""Runs are stopped, paused, continued and answered from another terminal."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sessionmgr.cli import send_request
from sessionmgr.testing.scripted_provider import Ask, Hang, Hear, Say, Wait
from tests.cli.command import environment
from tests.cli.command_terminal import CommandTerminal
from tests.cli.stored_runs import RunOwner, open_run_owner, store_runs
from tests.manager.harness import run_scripted

PATIENT = """
import sys
from sessionmgr.cli import queries, send_request, start
send_request.PATIENCE = queries.PATIENCE = 60.0
sys.exit(start())
"""
"""The command with long time limits, for a busy machine."""


def until_asked(terminal: CommandTerminal, owner: RunOwner) -> str:
    """Wait until the run asks something; return the id of the question."""
    owner.wait_for_question()
    _, out, _ = terminal("show", owner.run_id)
    found = re.search(r"^asks +sessionmgr approve (apr_\w+) allow\|deny$", out, re.MULTILINE)
    assert found is not None, out
    return found[1]


def test_a_run_is_cancelled_by_the_beginning_of_its_id(
    terminal: CommandTerminal, tmp_path: Path
) -> None:
    with open_run_owner(tmp_path, Hang()) as owner:
        code, out, err = terminal("cancel", owner.run_id[:9], "--reason", "wrong branch")
        assert (code, out, err) == (0, f"{owner.run_id}: is being cancelled", "")
        assert owner.wait_for_end() == "cancelled user wrong branch"
        code, out, err = terminal("cancel", owner.run_id)
        assert (code, out) == (0, f"{owner.run_id}: has already ended (cancelled)")
        code, out, err = terminal("cancel", owner.session_id, "--json")
        assert json.loads(out) == {"id": owner.session_id, "cancelled": 0}


def test_all_of_a_session_is_cancelled(terminal: CommandTerminal, tmp_path: Path) -> None:
    with open_run_owner(tmp_path, Hang()) as owner:
        code, out, _ = terminal("--json", "cancel", owner.session_id)
        assert (code, json.loads(out)) == (0, {"id": owner.session_id, "cancelled": 1})
        assert owner.wait_for_end().startswith("cancelled user")


def test_a_message_is_appended_to_a_run(terminal: CommandTerminal, tmp_path: Path) -> None:
    with open_run_owner(tmp_path, Say(text="ready"), Hear()) as owner:
        code, out, err = terminal("append", owner.session_id, "hello from afar")
        assert (code, out, err) == (0, f"{owner.run_id}: received the message", "")
        assert owner.wait_for_end().endswith("hello from afar")
        code, out, err = terminal("append", owner.run_id, "again")
        assert code == 1
        assert f"sessionmgr: error: {owner.run_id} has already ended (completed); " in err


def test_a_run_is_paused_and_the_way_back_is_reported(
    terminal: CommandTerminal, tmp_path: Path
) -> None:
    with open_run_owner(tmp_path, Say(text="ready"), Hang()) as owner:
        terminal("events", owner.run_id, "--type", "run_started")
        code, out, err = terminal("pause", owner.session_id, "--message", "go on")
        assert (code, err) == (0, "")
        found = re.fullmatch(
            rf"{owner.run_id}: is paused; to continue: sessionmgr resume (snp_\w+)", out
        )
        assert found is not None
        assert owner.wait_for_end().startswith("paused pause")
        _, out, _ = terminal("show", found[1], "--json")
        assert json.loads(out)["message"] == "go on"


def test_a_run_that_waits_for_an_answer_says_what_it_wants_to_do(
    terminal: CommandTerminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    question = Ask(tool="Bash", input={"command": "rm -rf build"}, reason="to begin anew")
    with open_run_owner(tmp_path, question, asks=True) as owner:
        owner.wait_for_question()
        _, out, _ = terminal("show", owner.run_id)
        assert "wants         Bash: rm -rf build (to begin anew)\nuntil         denied at " in out
        assert "status        asks\n" in out


@pytest.mark.parametrize("answer", ["allow", "deny"])
@pytest.mark.parametrize("by", ["run", "question"])
def test_a_question_is_answered(
    terminal: CommandTerminal, tmp_path: Path, answer: str, by: str
) -> None:
    with open_run_owner(tmp_path, Ask(tool="rm"), Say(text="done"), asks=True) as owner:
        question = until_asked(terminal, owner)
        target = owner.run_id if by == "run" else question[:12]
        code, out, err = terminal("approve", target, answer, "--reason", "seen")
        word = {"allow": "allowed", "deny": "denied"}[answer]
        assert (code, out, err) == (0, f"{owner.run_id}: {word} rm", "")
        assert owner.wait_for_end().startswith("completed")
        _, out, _ = terminal("show", owner.run_id)
        assert ("rm: seen" in out) == (answer == "deny")


def test_a_run_that_asks_nothing_cannot_be_answered(
    terminal: CommandTerminal, tmp_path: Path
) -> None:
    with open_run_owner(tmp_path, Hang()) as owner:
        code, _, err = terminal("approve", owner.run_id, "allow")
        assert code == 1
        assert err.endswith(f"{owner.run_id} has no open question; sessionmgr questions lists them")
        code, _, err = terminal("approve", "apr_0", "allow")
        assert (code, err) == (1, "sessionmgr: error: no open question 'apr_0' is stored")


def test_what_the_program_refuses_is_reported_with_its_reason(
    terminal: CommandTerminal, tmp_path: Path
) -> None:
    with open_run_owner(tmp_path, Wait(seconds=30)) as owner:
        terminal("pause", owner.run_id)
        code, _, err = terminal("pause", owner.run_id)
        assert code == 1
        assert "has already ended (paused)" in err


def test_requests_for_a_killed_program_are_refused_at_once(
    terminal: CommandTerminal, tmp_path: Path
) -> None:
    with open_run_owner(tmp_path, Hang()) as owner:
        owner.process.kill()
        owner.process.wait()
        for words in (
            ["cancel", owner.run_id],
            ["cancel", owner.session_id],
            ["pause", owner.run_id],
            ["append", owner.run_id, "x"],
            ["approve", owner.run_id, "deny"],
        ):
            code, out, err = terminal(*words)
            assert (code, out) == (1, "")
            assert "no process owns" in err
        _, out, _ = terminal("sessions", "--status", "orphaned")
        assert owner.session_id[:12] in out
        _, out, _ = terminal("sessions", "--status", "running")
        assert out == ""


def test_a_program_that_does_not_answer_is_named_within_seconds(
    terminal: CommandTerminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_run_owner(tmp_path, Hang()) as owner:
        owner.suspend()
        with monkeypatch.context() as impatient:
            impatient.setattr(send_request, "PATIENCE", 1.0)
            code, out, err = terminal("cancel", owner.run_id)
        assert (code, out) == (1, "")
        assert f"process {owner.process.pid} owns {owner.run_id}" in err
        os.kill(owner.process.pid, signal.SIGCONT)
        # The withdrawn request is not carried out: the run still accepts another one.
        code, out, _ = terminal("cancel", owner.run_id, "--reason", "the second order")
        assert code == 0
        assert owner.wait_for_end() == "cancelled user the second order"


def test_a_request_from_a_process_of_its_own_reaches_the_run(tmp_path: Path) -> None:
    with open_run_owner(tmp_path, Hang()) as owner:
        words = ["cancel", owner.run_id, "--store", str(owner.store)]
        ran = subprocess.run(
            [sys.executable, "-c", PATIENT, *words],
            env=environment(tmp_path),
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=240,
        )
        assert (ran.returncode, ran.stderr) == (0, "")
        assert owner.wait_for_end().startswith("cancelled user")


def test_a_request_for_what_has_ended_says_how(terminal: CommandTerminal, tmp_path: Path) -> None:
    (done,) = store_runs(tmp_path / "runs.db", run_scripted(Say(text="x")))
    code, _, err = terminal("pause", done.id)
    assert code == 1
    assert err.startswith(f"sessionmgr: error: {done.id} has already ended (completed); ")
    code, _, err = terminal("append", done.session_id, "x")
    assert code == 1
    assert f"{done.session_id} has no active run" in err
