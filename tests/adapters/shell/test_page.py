"""The page of the shell adapter agrees with the code."""

from pathlib import Path

import pytest

import sessionmgr_adapters.shell
from sessionmgr.adapter.kit.child_run import TRANSITIONS
from sessionmgr.model.state_diagram import mermaid_diagram
from sessionmgr_adapters.shell import ShellOptions
from sessionmgr_adapters.shell.adapter import PERMISSIONS

PAGE = Path(sessionmgr_adapters.shell.__file__).with_name("README.md").read_text(encoding="utf-8")


def test_the_picture_of_the_phases_is_their_table() -> None:
    assert f"```mermaid\n{mermaid_diagram(TRANSITIONS)}\n```" in PAGE


@pytest.mark.parametrize("option", ShellOptions.__struct_fields__)
def test_each_option_is_explained(option: str) -> None:
    assert f"| `{option}` |" in PAGE


@pytest.mark.parametrize("mode", PERMISSIONS.modes)
def test_each_permission_mode_is_explained(mode: str) -> None:
    assert mode in PAGE
