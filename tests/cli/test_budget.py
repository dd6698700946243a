"""A budget that a provider cannot enforce is refused by name, whatever its source."""

from pathlib import Path

import pytest

from tests.cli.command_terminal import CommandTerminal

WHY = "shell reports no cost, so a dollar budget cannot be enforced; remove the budget for shell"
RUN = ("run", "-p", "shell", "echo yes")
BATCH = ("batch", "jobs.jsonl", "-p", "shell")


@pytest.fixture
def place(terminal: CommandTerminal) -> CommandTerminal:
    (terminal.home / "jobs.jsonl").write_text(
        '{"id": "a", "prompt": "echo a"}\n{"id": "b", "prompt": "echo b"}\n'
    )
    return terminal


@pytest.mark.parametrize("verb", [RUN, BATCH, (*BATCH, "--dry-run")], ids=" ".join)
@pytest.mark.parametrize("source", ["sessionmgr.toml:1", "SESSIONMGR_BUDGET_USD", "--budget-usd"])
def test_a_budget_that_cannot_be_enforced_is_refused_with_its_source(
    verb: tuple[str, ...], source: str, place: CommandTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags: tuple[str, ...] = ()
    if source == "--budget-usd":
        flags = ("--budget-usd", "2")
    elif source.isupper():
        monkeypatch.setenv(source, "2")
    else:
        (place.home / "sessionmgr.toml").write_text("budget_usd = 2.0\n")
        source = str(Path.cwd() / source)
    code, out, err = place(*verb, *flags)
    assert (code, out) == (1, "")
    remedy = ""
    if verb[0] == "batch":
        remedy = ": set provider.claude.budget_usd = 2 instead"
    if verb[0] == "batch" and source == "--budget-usd":
        remedy = ": use --set claude.budget_usd=2 instead of --budget-usd"
    said = f"sessionmgr: error: budget_usd (2.0, from {source}): {WHY}{remedy}"
    assert err.splitlines() == [said]
    assert not (place.home / "runs").exists()


def test_a_budget_of_a_job_is_refused_with_the_jobs_line(place: CommandTerminal) -> None:
    (place.home / "jobs.jsonl").write_text('{"id": "a", "prompt": "echo", "budget_usd": 2}\n')
    code, _, err = place(*BATCH)
    assert code == 1
    assert f"sessionmgr: error: jobs.jsonl:1: budget_usd (2.0): {WHY}" in err.splitlines()


def test_who_prefers_a_cost_may_do_without_the_budget(place: CommandTerminal) -> None:
    code, out, err = place(*RUN, "--budget-usd", "2", "--prefer", "cost")
    assert (code, out) == (0, "yes")
    assert "warning: cost: the provider does not support cost" in err
