"""The verb `costs`: a sum says whether it is complete."""

import json

from sessionmgr.testing.scripted import Say, Use
from tests.cli.room import fill
from tests.cli.terminal import Terminal
from tests.manager.house import play


def test_a_sum_of_which_a_part_has_no_price_is_partial(terminal: Terminal) -> None:
    known = play(Use(output=5, usd=0.25), Say(text="x"))
    fill(terminal.store, known, play(Use(output=7), Say(text="x")))
    code, out, _ = terminal("costs", "--by", "provider")
    assert (code, out.splitlines()[1].split()) == (
        0,
        ["actor", "0", "0", "0", "12", "$0.2500+", "(partial)"],
    )
    _, out, _ = terminal("costs", "--by", "provider", "--json")
    line = json.loads(out)
    assert (line["usd"], line["unpriced"], line["provenance"]) == (0.25, 1, "partial")


def test_a_sum_that_is_known_is_reported_and_one_that_is_not_is_unknown(terminal: Terminal) -> None:
    fill(terminal.store, play(Use(usd=0.25), Say(text="x")), play(Use(output=7), Say(text="x")))
    _, out, _ = terminal("costs", "--json")
    found = {json.loads(line)["provenance"] for line in out.splitlines()}
    assert found == {"reported", "unknown"}
