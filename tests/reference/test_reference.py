"""The reference page is current, and every field in it has a text."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sessionmgr.batch.results import JobResult
from sessionmgr.cli.config.settings import SETTINGS
from sessionmgr.cli.verb_table import VERBS
from sessionmgr.errors import SessionmgrError
from sessionmgr.field_docs import field_docs, structs_in
from sessionmgr.model import FailureKind
from sessionmgr.model.event.codec import EVENT_TYPES
from sessionmgr.model.run import RunResult
from sessionmgr.reference import PATH, providers, render
from sessionmgr.reference.markdown import anchor, table
from tests.adapter.birds import install_birds
from tests.cli.command import environment, run_command as command

PAGE = render()


def test_the_page_in_the_repository_is_what_the_code_generates() -> None:
    stored = PATH.read_text(encoding="utf-8") if PATH.exists() else ""
    assert stored == PAGE, "run: python -m sessionmgr.reference --write"


def test_each_field_on_the_page_has_a_text() -> None:
    empty = [line for line in PAGE.splitlines() if re.match(r"\| `.*\|\s*\|$", line)]
    assert empty == [], 'put a text in """quotes""" on the line after each of these fields'


@pytest.mark.parametrize("type_", EVENT_TYPES)
def test_each_event_has_an_entry(type_: str) -> None:
    assert re.search(rf"^### .*\b{type_}\b", PAGE, re.MULTILINE)


@pytest.mark.parametrize("name", [*RunResult.__struct_fields__, *SETTINGS, *FailureKind])
def test_each_field_setting_and_kind_of_failure_has_an_entry(name: str) -> None:
    assert f"\n| `{name}` |" in PAGE


@pytest.mark.parametrize("verb", VERBS)
def test_each_command_has_an_entry(verb: str) -> None:
    assert f"\n### sessionmgr {verb}\n" in PAGE


def errors_below(error: type[Exception]) -> list[type[Exception]]:
    below = [each for each in error.__subclasses__() if each.__module__.startswith("sessionmgr.")]
    return [error, *(inner for each in below for inner in errors_below(each))]


def test_each_error_is_in_the_tree() -> None:
    tree = PAGE.partition("\n## Errors\n")[2]
    named = re.findall(r"^(?:[│├└─ ]*── )?(\w+)", tree.partition("```text\n")[2], re.MULTILINE)
    errors = [
        each.__name__
        for each in errors_below(SessionmgrError)
        if not each.__module__.startswith("sessionmgr.testing")
    ]
    assert len(errors) > 50
    assert set(errors) == set(named)


def test_the_command_prints_the_page() -> None:
    ran = subprocess.run(
        [sys.executable, "-X", "utf8", "-m", "sessionmgr.reference"],
        capture_output=True,
        encoding="utf-8",
        check=True,
        timeout=120,
    )
    assert ran.stdout == PAGE


def test_no_two_sections_have_the_same_anchor() -> None:
    anchors = [anchor(each) for each in re.findall(r"^#+ (.*)$", PAGE, re.MULTILINE)]
    assert len(anchors) == len(set(anchors))


def test_a_text_belongs_to_the_field_before_it_and_is_inherited() -> None:
    texts = field_docs(JobResult)
    assert texts["job"] == "The job's id."
    assert texts["status"] == "How the run ended, or its present state."
    assert field_docs(FailureKind)["STALLED"].startswith("The agent was silent")
    assert "\n" not in "".join(field_docs(EVENT_TYPES["run_started"]).values())
    assert field_docs(Path) == {}


def test_structs_are_found_inside_the_fields_of_others() -> None:
    names = [each.__name__ for each in structs_in(RunResult)]
    assert names[0] == "RunResult"
    assert {"Failure", "FailureKind", "Usage", "Degraded", "Support"} <= {*names}
    assert len(names) == len(set(names))


def test_a_table_leaves_out_empty_columns_and_escapes_bars() -> None:
    assert table(("a", "b", "c"), [("1", "", "x|y")]) == "| a | c |\n| --- | --- |\n| 1 | x\\|y |"


def test_the_schemas_contain_the_texts(tmp_path: Path) -> None:
    for what, definition, field in (
        (["result"], "RunResult", "status"),
        (["event"], "MessageStreamed", "delta"),
        (["job"], "Job", "provider"),
        (["options", "shell"], "ShellOptions", "timeout"),
        (["output", "shell"], "RunResult", "status"),
    ):
        ran = command("schema", *what, env=environment(tmp_path))
        schema = json.loads(ran.stdout)
        assert schema["$defs"][definition]["properties"][field]["description"]


def test_the_agents_of_a_provider_have_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_birds(tmp_path, monkeypatch)
    monkeypatch.setattr(providers, "PACKAGE", "tests")
    rows = providers.agents().splitlines()
    assert rows[0] == "## Agents"
    assert [row.split(" | ")[:3] for row in rows[-2:]] == [
        ["| `birds:heron`", "Heron", "exact: default"],
        ["| `birds:stork`", "Stork", "exact: default"],
    ]
    monkeypatch.setattr(providers, "PACKAGE", "nothing")
    assert providers.agents() == ""
