"""The page "Write an adapter" says what the code says."""

from __future__ import annotations

import importlib
import pydoc
import re
from pathlib import Path

import msgspec
import pytest

import sessionmgr.adapter
import sessionmgr.testing.toy
from sessionmgr.adapter import ProviderAdapter, RunContext
from sessionmgr.model import Event, FailureKind, RunEnded
from sessionmgr.model.diagram import mermaid
from sessionmgr.model.event import life, tool
from sessionmgr.testing.toy.driver import TRANSITIONS

PAGE = Path(sessionmgr.adapter.__file__).with_name("README.md").read_text(encoding="utf-8")
TOY = "".join(
    path.read_text(encoding="utf-8")
    for path in sorted(Path(sessionmgr.testing.toy.__file__).parent.glob("*.py"))
)
EXCERPTS = re.findall(r"^```py\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
# What the manager and the kit emit, or what an adapter has `finish`, `fail` and `ask` for.
NOT_THEIRS = {
    "SessionCreated",
    "SessionClosed",
    "SessionReopened",
    "MessageSent",
    "EventsPruned",
    "StallSuspected",
    "UnknownEvent",
}


def events() -> list[type[Event]]:
    """The types of events that an adapter emits."""
    found: list[type[Event]] = []
    todo: list[type[Event]] = [Event]
    while todo:
        for each in todo.pop(0).__subclasses__():
            todo.append(each)
            theirs = not issubclass(each, RunEnded | tool.ToolApproval)
            if theirs and each.__module__.startswith("sessionmgr.model"):
                found.append(each)
    return [each for each in found if each.__name__ not in NOT_THEIRS and not each.__subclasses__()]


def table() -> str:
    """The table of the events, with their own fields."""
    common = set(Event.__struct_fields__)
    lines = ["| event | fields | meaning |", "|---|---|---|"]
    for each in sorted(events(), key=lambda each: each.__name__):
        fields = ", ".join(
            field.name if field.required else f"{field.name}?"
            for field in msgspec.structs.fields(each)
            if field.name not in common
        )
        meaning = (each.__doc__ or "").splitlines()[0]
        lines.append(f"| `{each.__name__}` | {fields} | {meaning} |")
    return "\n".join(lines)


@pytest.mark.parametrize("excerpt", EXCERPTS, ids=range(len(EXCERPTS)))
def test_what_is_shown_of_the_toy_is_in_its_files(excerpt: str) -> None:
    assert excerpt in TOY


def test_the_toy_stays_small() -> None:
    assert len(TOY.splitlines()) <= 620


def test_the_picture_of_the_toys_driver_is_its_table() -> None:
    assert f"```mermaid\n{mermaid(TRANSITIONS)}\n```" in PAGE


def test_the_events_and_the_kinds_of_failures_are_all_there() -> None:
    assert {"RunStarted", "MessageStreamed", "ToolCallFailed"} <= {
        each.__name__ for each in events()
    }
    assert life.RunStarted in events()
    assert table() in PAGE
    assert ", ".join(f"`{each.value}`" for each in FailureKind) in PAGE


@pytest.mark.parametrize("name", [name for name in vars(RunContext) if not name.startswith("_")])
def test_what_a_run_has_is_named(name: str) -> None:
    section = PAGE.partition("### A run\n")[2].partition("### Events")[0]
    assert re.search(rf"`[^`]*\b{name}\b[^`]*`", section), name


@pytest.mark.parametrize(
    "module", ["connections", "run_context", *sorted(set(re.findall(r"kit\.\w+", PAGE)))]
)
def test_pythons_help_explains_a_module(module: str) -> None:
    assert pydoc.render_doc(importlib.import_module(f"sessionmgr.adapter.{module}"))


@pytest.mark.parametrize("name", ["mock_sdk", "player", "adapter_conformance"])
def test_pythons_help_explains_a_module_of_the_test_kit(name: str) -> None:
    assert pydoc.render_doc(importlib.import_module(f"sessionmgr.testing.{name}"))


def test_the_methods_of_an_adapter_are_named() -> None:
    for name in ("run", "interrupt", "release", "readiness", "fault"):
        assert name in vars(ProviderAdapter)
        assert f"`{name}" in PAGE
