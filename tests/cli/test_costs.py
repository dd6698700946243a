"""The verb `costs`: a sum says whether it is complete."""

import json

import pytest

from sessionmgr.testing.scripted_provider import Ask, Fail, Say, Use
from tests.cli.command_terminal import CommandTerminal
from tests.cli.stored_runs import open_run_owner, store_runs
from tests.manager.harness import run_scripted


def test_a_sum_of_which_a_part_has_no_price_is_partial(terminal: CommandTerminal) -> None:
    known = run_scripted(Use(output=5, usd=0.25), Say(text="x"))
    store_runs(terminal.store, known, run_scripted(Use(output=7), Say(text="x")))
    code, out, _ = terminal("costs", "--by", "provider")
    assert (code, out.splitlines()[1].split()) == (
        0,
        ["actor", "0", "0", "0", "12", "$0.2500+", "(partial)"],
    )
    _, out, _ = terminal("costs", "--by", "provider", "--json")
    line = json.loads(out)
    assert (line["usd"], line["unpriced"], line["provenance"]) == (0.25, 1, "partial")


def test_a_sum_that_is_known_is_reported_and_one_that_is_not_is_unknown(
    terminal: CommandTerminal,
) -> None:
    store_runs(
        terminal.store,
        run_scripted(Use(usd=0.25), Say(text="x")),
        run_scripted(Use(output=7), Say(text="x")),
    )
    _, out, _ = terminal("costs", "--json")
    found = {json.loads(line)["provenance"] for line in out.splitlines()}
    assert found == {"reported", "unknown"}


@pytest.mark.parametrize("provider", ["actor", "shell"])
def test_a_sum_with_a_run_that_was_cut_off_is_partial_if_its_provider_reports_costs(
    provider: str, terminal: CommandTerminal
) -> None:
    known, cut = (
        run_scripted(Use(output=5, usd=0.25), Say(text="x")),
        run_scripted(Fail(message="cut off")),
    )
    session = store_runs(terminal.store, known, cut, provider=provider)[1].session_id
    said = ["$0.2500+", "(partial)"] if provider == "actor" else ["$0.2500"]
    for how in (["--by", "provider"], ["--by", "day"]):
        _, out, _ = terminal("costs", *how)
        assert out.splitlines()[1].split()[5:] == said
    _, out, _ = terminal("costs", session, "--json")
    assert (json.loads(out)["usd"], json.loads(out)["unpriced"]) == (None, provider == "actor")


def test_a_run_that_was_cut_off_after_a_report_has_a_partial_cost_everywhere(
    terminal: CommandTerminal,
) -> None:
    with open_run_owner(
        terminal.home, Use(output=5, usd=0.25), Ask(tool="Bash"), asks=True
    ) as owner:
        owner.wait_for_question()
        owner.process.kill()
    terminal("run", "-p", "shell", "echo hi")  # the next command records the end of the killed run
    for verb in (["show", owner.run_id], ["show", owner.session_id], ["costs", owner.run_id]):
        assert "$0.2500+ (partial)" in terminal(*verb)[1]
    lines = terminal("costs", "--by", "session")[1].splitlines()
    assert any(owner.session_id in line and line.endswith("+ (partial)") for line in lines)
    lines = terminal("sessions")[1].splitlines()
    assert any(owner.session_id[:12] in line and "+ (partial)" in line for line in lines)
