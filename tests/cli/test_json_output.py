"""Printed JSON controls no terminal and keeps its values."""

import json
import unicodedata
from typing import cast

import pytest
from hypothesis import given, strategies as st

from sessionmgr.cli.terminal.safe_text import escaped_json
from sessionmgr.testing.scripted_provider import Say
from tests.cli.command_terminal import CommandTerminal
from tests.cli.stored_runs import store_runs
from tests.manager.harness import run_scripted

HOSTILE = "a\x1b[31m\x7f\x80\x90\x9b31m\x9d0;x\x9c\u061c\u200e\u200f\u2028\u202e\u2066\u2069é漢"
ACTS = set(HOSTILE) - set("a[31m0;xé漢")


@given(text=st.text() | st.lists(st.sampled_from(HOSTILE)).map("".join))
def test_no_character_of_json_acts_on_a_terminal_and_its_values_stay(text: str) -> None:
    given = {text: [text, 1, None]}
    printed = escaped_json(json.dumps(given, ensure_ascii=False))
    assert json.loads(printed) == given
    kinds = {unicodedata.category(each) for each in printed} - {"Cf"}
    assert not kinds & {"Cc", "Cs", "Zl", "Zp"}
    assert not set(printed) & ACTS


@pytest.mark.parametrize("words", [["run", "-p", "scripted"], ["batch", "-n", "1"]])
def test_what_an_agent_says_is_escaped_as_it_comes(
    prompt: CommandTerminal, words: list[str]
) -> None:
    script = json.dumps([{"do": "say", "text": HOSTILE}])
    if words[0] == "batch":
        job = {"id": "a", "provider": "scripted", "prompt": script}
        (prompt.home / "jobs.jsonl").write_text(json.dumps(job))
        script = "jobs.jsonl"
    code, out, _ = prompt.bare(*words, "--json", script)
    assert code == 0
    assert not set(out) & ACTS
    assert HOSTILE in _texts([json.loads(line) for line in out.splitlines()])


@pytest.mark.parametrize("verb", ["events", "show", "export"])
def test_what_is_stored_is_escaped_when_it_is_printed(terminal: CommandTerminal, verb: str) -> None:
    (result,) = store_runs(terminal.store, run_scripted(Say(text=HOSTILE)))
    words = [verb, result.id if verb != "export" else result.session_id]
    _, out, _ = terminal(*words, *(["--json"] if verb != "export" else []))
    assert not set(out) & ACTS
    assert HOSTILE in _texts([json.loads(line) for line in out.splitlines()])


def test_a_note_about_a_place_with_an_odd_name_is_harmless(
    terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = terminal.home / "x\x1b]0;y\x07\x9b2J\u202e"
    place.mkdir()
    (place / "sessionmgr.toml").write_text('store = "x.db"\n')
    monkeypatch.chdir(place)
    code, _, err = terminal.bare("schema", "job")
    assert (code, set(err) & ACTS) == (0, set())
    assert "store = " in err
    _, out, err = terminal.bare("trust", ".")
    assert not set(out + err) & ACTS


def test_a_setting_is_printed_escaped(terminal: CommandTerminal) -> None:
    (terminal.home / "sessionmgr.toml").write_text('model = "x\\u009b2J\\u202e"\n')
    for words in (["--print-config"], ["--print-config", "--json"]):
        code, out, _ = terminal.bare(*words)
        assert (code, set(out) & ACTS) == (0, set())


def _texts(value: object) -> set[str]:
    match value:
        case str():
            return {value}
        case dict():
            members = cast("dict[str, object]", value).values()
            return {text for each in members for text in _texts(each)}
        case list():
            return {text for each in cast("list[object]", value) for text in _texts(each)}
        case _:
            return set()
