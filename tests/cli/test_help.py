"""The help texts of all commands name their defaults, and fit a terminal of 80 columns."""

import argparse

import msgspec
import pytest

from sessionmgr.cli.config.settings import CLOCK_DEFAULTS, SETTINGS
from sessionmgr.cli.parser import STORE, Parser
from sessionmgr.cli.terminal.safe_text import display_width
from sessionmgr.cli.verb_table import VERBS, load_verb
from sessionmgr.manager.clocks import DEFAULT_CLOCKS as CLOCKS
from sessionmgr.model.duration import parse_duration
from tests.cli.command_terminal import CommandTerminal


def actions(verb: str) -> list[argparse.Action]:
    """Return the arguments of a command, in the order of its help."""
    parser = Parser(f"sessionmgr {verb}", "")
    load_verb(VERBS[verb]).add_arguments(parser)
    parser.add_global_flags()
    return list(parser._actions)  # argparse has no public way


QUERIES = {"sessions", "show", "costs", "approve"}


@pytest.mark.parametrize("verb", sorted(VERBS.keys() - QUERIES))
def test_each_option_with_a_value_names_its_default(verb: str) -> None:
    silent = [
        "/".join(action.option_strings)
        for action in actions(verb)
        if action.option_strings and action.nargs != 0 and action.dest != "batch"
        if "default" not in (action.help or "")
    ]
    assert silent == []


@pytest.mark.parametrize("verb", VERBS)
def test_each_argument_has_a_help(verb: str) -> None:
    assert all(action.help for action in actions(verb))


@pytest.mark.parametrize("words", [["--help"], *([verb, "--help"] for verb in VERBS)], ids=" ".join)
def test_the_help_fits_eighty_columns(
    words: list[str], terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = terminal.bare(*words)
    assert (code, err) == (0, "")
    assert [line for line in out.splitlines() if display_width(line) > 80] == []


def test_the_defaults_in_the_help_are_those_in_use(terminal: CommandTerminal) -> None:
    pairs = [pair.split("=") for pair in CLOCK_DEFAULTS.split(", ")]
    assert {name: parse_duration(text) for name, text in pairs} == msgspec.structs.asdict(CLOCKS)
    for name in ("concurrency", "retries", "retry_from", "on_denied"):
        _, out, _ = terminal.bare("--print-config")
        value = next(line for line in out.splitlines() if line.startswith(f"{name} = "))
        default = value.split(" = ")[1].split("  #")[0].strip('"')
        assert f"default: {default}" in SETTINGS[name].help
    assert SETTINGS["store"].help == STORE
