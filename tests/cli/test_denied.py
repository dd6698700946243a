"""A denied job at the command line: shown with its command, in -q too, and failed if asked."""

import json
from pathlib import Path

import pytest

from tests.cli.command_terminal import CommandTerminal

ASKS = json.dumps([{"do": "ask", "tool": "Bash", "input": {"command": "touch q1.txt"}}])
DENIED = "! q1 was denied Bash: touch q1.txt (no approver is configured)"
NO_RULES = "no approval rules (--approve FILE): every request of an agent will be denied"


@pytest.fixture
def place(prompt: CommandTerminal) -> CommandTerminal:
    job = {"id": "q1", "provider": "scripted", "prompt": ASKS}
    (prompt.home / "jobs.jsonl").write_text(json.dumps(job) + "\n")
    return prompt


def test_a_batch_without_rules_says_so_at_its_start_and_what_was_denied(
    place: CommandTerminal,
) -> None:
    code, _, err = place("batch", "jobs.jsonl")
    lines = err.splitlines()
    assert (code, lines[0], lines[1]) == (0, f"warning: {NO_RULES}", DENIED)
    assert lines[3].startswith("1 of 1 job completed, 1 with denials (in ")
    assert lines[6] == "  q1   Bash: touch q1.txt  no approver is configured"


def test_a_quiet_batch_says_what_was_denied_and_no_more(place: CommandTerminal) -> None:
    code, _, err = place("batch", "-q", "jobs.jsonl")
    assert (code, err.splitlines()) == (0, [f"warning: {NO_RULES}", DENIED])


@pytest.mark.parametrize("how", [["--on-denied", "fail"], []], ids=["flag", "setting"])
def test_a_denied_job_fails_where_that_is_asked_for(how: list[str], place: CommandTerminal) -> None:
    if not how:
        place.home.joinpath("config/sessionmgr").mkdir(parents=True)
        settings: Path = place.home / "config/sessionmgr/sessionmgr.toml"
        settings.write_text('on_denied = "fail"\n')
    code, _, err = place("batch", "jobs.jsonl", *how)
    assert code == 3
    assert "✗ q1 failed: permission_refused: denied: Bash: touch q1.txt" in err


def test_a_dry_run_says_that_every_question_will_be_denied(place: CommandTerminal) -> None:
    code, out, err = place("batch", "--dry-run", "jobs.jsonl")
    assert (code, f"sessionmgr: warning: {NO_RULES}" in err.splitlines()) == (0, True)
    assert out.startswith("q1: would run with scripted")
    rules = place.home / "rules.toml"
    rules.write_text('[[rule]]\ntool = "Bash"\ncommand = "touch"\ndecision = "allow"\n')
    code, _, err = place("batch", "--dry-run", "jobs.jsonl", "--approve", str(rules))
    assert (code, NO_RULES in err) == (0, False)


def test_another_way_to_treat_a_denied_job_is_refused(place: CommandTerminal) -> None:
    code, _, err = place("batch", "jobs.jsonl", "--on-denied", "ignore")
    assert code == 1
    assert "--on-denied: unknown way to treat a denied job 'ignore'" in err
