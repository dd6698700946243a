"""The page "Write an adapter" agrees with the code."""

from __future__ import annotations

import importlib
import pkgutil
import pydoc
import re
from pathlib import Path

import pytest

import sessionmgr.adapter
import sessionmgr.testing.toy
from sessionmgr.adapter import ProviderAdapter, RunContext
from sessionmgr.model.state_diagram import mermaid_diagram
from sessionmgr.testing.toy.driver import TRANSITIONS

PAGE = Path(sessionmgr.adapter.__file__).with_name("README.md").read_text(encoding="utf-8")
TOY = "".join(
    path.read_text(encoding="utf-8")
    for path in sorted(Path(sessionmgr.testing.toy.__file__).parent.glob("*.py"))
)
EXCERPTS = re.findall(r"^```py\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("excerpt", EXCERPTS, ids=range(len(EXCERPTS)))
def test_excerpts_of_the_toy_are_in_its_files(excerpt: str) -> None:
    assert excerpt in TOY


def test_the_toy_stays_small() -> None:
    assert len(TOY.splitlines()) <= 620


def test_the_picture_of_the_toys_driver_is_its_table() -> None:
    assert f"```mermaid\n{mermaid_diagram(TRANSITIONS)}\n```" in PAGE


@pytest.mark.parametrize("name", [name for name in vars(RunContext) if not name.startswith("_")])
def test_what_a_run_has_is_named(name: str) -> None:
    section = PAGE.partition("### A run\n")[2].partition("### Events")[0]
    assert re.search(rf"`[^`]*\b{name}\b[^`]*`", section), name


@pytest.mark.parametrize(
    "module", ["connections", "run_context", *sorted(set(re.findall(r"kit\.\w+", PAGE)))]
)
def test_pythons_help_explains_a_module(module: str) -> None:
    assert pydoc.render_doc(pkgutil.resolve_name(f"sessionmgr.adapter.{module}"))


@pytest.mark.parametrize("name", ["mock_sdk", "player", "adapter_conformance"])
def test_pythons_help_explains_a_module_of_the_test_kit(name: str) -> None:
    assert pydoc.render_doc(importlib.import_module(f"sessionmgr.testing.{name}"))


def test_the_methods_of_an_adapter_are_named() -> None:
    for name in ("run", "interrupt", "release", "readiness", "fault"):
        assert name in vars(ProviderAdapter)
        assert f"`{name}" in PAGE
