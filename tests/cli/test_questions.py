"""The number of a question never refers to another question later."""

from pathlib import Path

import pytest

from sessionmgr.cli import open_questions
from sessionmgr.cli.open_questions import OpenQuestion, what_it_wants
from sessionmgr.cli.terminal.safe_text import display_width
from sessionmgr.cli.verbs.questions import question_lines
from sessionmgr.model import ToolApprovalRequested, timestamps
from sessionmgr.testing.scripted_provider import Ask, Say
from tests.cli.command_terminal import CommandTerminal
from tests.cli.stored_runs import open_run_owner

NOW = timestamps.parse_timestamp("2026-01-31T12:00:00.000Z")


def numbers(terminal: CommandTerminal) -> dict[str, str]:
    """Return the open questions by number."""
    lines = terminal("questions")[1].splitlines()
    found = [line.split(maxsplit=1) for line in lines if line[:4].strip()]
    return {each[0]: each[1] for each in found}


def test_a_number_is_not_used_again_for_a_day(
    terminal: CommandTerminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(tool: str) -> list[dict[str, str]]:
        seen: list[dict[str, str]] = []
        with open_run_owner(tmp_path, Ask(tool=tool), Say(text="done"), asks=True) as owner:
            owner.wait_for_question()
            seen += [numbers(terminal), numbers(terminal)]
            assert terminal("approve", owner.run_id, "allow")[0] == 0
            owner.wait_for_end()
        return seen

    assert ask("rm") == [{"1": "rm"}] * 2
    assert ask("cp") == [{"2": "cp"}] * 2
    monkeypatch.setattr(open_questions, "KEPT", 0.0)
    assert ask("mv") == [{"3": "mv"}] * 2  # the others are forgotten with it
    assert ask("ln")[0] == {"1": "ln"}


def test_several_questions_are_answered_one_by_one(
    terminal: CommandTerminal, tmp_path: Path
) -> None:
    with (
        open_run_owner(tmp_path, Ask(tool="rm"), asks=True) as one,
        open_run_owner(tmp_path, Ask(tool="cp"), asks=True) as two,
    ):
        one.wait_for_question()
        two.wait_for_question()
        code, out, err = terminal("approve", "allow")
        assert (code, out) == (1, "")
        assert "2 questions are open; answer one by its number:" in err
        assert "rm (apr_" in err
        assert "cp (apr_" in err
        (number,) = [number for number, wants in numbers(terminal).items() if wants == "cp"]
        assert terminal("approve", number, "deny") == (0, f"{two.run_id}: denied cp", "")
        assert terminal("approve", "allow") == (0, f"{one.run_id}: allowed rm", "")


def test_what_an_agent_wants_hides_nothing() -> None:
    event = ToolApprovalRequested(
        approval_id="apr_1",
        tool_name="Bash",
        tool_input={"command": "ls\x1b]0;; rm -rf ~ \x07\n&& echo done"},
    )
    assert what_it_wants(event) == "Bash: ls^[]0;; rm -rf ~ ^G && echo done"


def test_a_question_is_shown_whole_and_fits() -> None:
    question = OpenQuestion(
        number=12,
        id="apr_93bbnhgtsqw6zes0mjdd",
        session_id="ses_1",
        run_id="run_1",
        provider="claude",
        job="core-11",
        out="/srv/runs/night",
        cwd="/srv/repositories/payments",
        tool_name="Bash",
        tool_input={"command": "x"},
        wants="Bash: git push origin main --force-with-lease && curl https://example.org/deploy",
        reason="to deploy",
        asked_at=timestamps.format_timestamp(NOW - 30),
        waits=30.0,
        until=timestamps.format_timestamp(NOW + 90),
    )
    lines = question_lines(question, width=80, now=NOW)
    assert all(display_width(line) <= 80 for line in lines)
    said = " ".join(" ".join(lines).split())
    assert said.startswith("12 Bash: git push origin main --force-with-lease && curl https://")
    assert "claude asks for job core-11 of /srv/runs/night in /srv/repositories/payments" in said
    assert "reason: to deploy waits 30s, denied at " in said
    assert said.endswith("(1m30s left), apr_93bbnhgtsqw6zes0mjdd")
