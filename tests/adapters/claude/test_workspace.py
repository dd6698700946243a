"""`PERMISSIONS.json` of a directory narrows a run, and never widens it."""

from __future__ import annotations

from pathlib import Path

import pytest
from trio.testing import MockClock

from sessionmgr.model import FailureKind
from sessionmgr.testing.mock_sdk import MockSdk
from sessionmgr_adapters.claude.tool_access import (
    LARGEST_FILE,
    PERMISSIONS_FILE,
    READONLY_TOOLS,
    STANDARD_TOOLS,
    WorkspaceInvalidError,
    WorkspacePermissions,
    read_workspace_permissions,
)
from tests.adapters.claude.mock_agent import Talk
from tests.adapters.claude.mocked_manager import open_claude_manager, ran
from tests.adapters.claude.run_contexts import flags, spec


def say(place: Path, text: str) -> str:
    (place / PERMISSIONS_FILE).write_text(text)
    return str(place)


def test_where_nothing_is_said_all_is_as_the_run_has_it(tmp_path: Path) -> None:
    assert read_workspace_permissions(str(tmp_path)) == WorkspacePermissions()
    made = flags(spec(cwd=str(tmp_path)))
    assert not any(each.startswith(("--tools", "--strict")) for each in made)
    assert "--tools=Bash" in flags(spec(cwd=str(tmp_path), tools_allowed=("Bash",)))


@pytest.mark.parametrize(
    ("text", "wanted", "left"),
    [
        ('{"tier": "readonly"}', None, READONLY_TOOLS),
        ('{"tier": "standard"}', None, STANDARD_TOOLS),
        ('{"tier": "full"}', None, None),
        ('{"tier": "full"}', ("Bash",), ("Bash",)),
        ('{"tier": "custom", "tools": ["Bash"]}', None, ("Bash",)),
        ('{"tier": "custom"}', None, ()),
        ('{"tier": "readonly"}', ("Read", "Bash", "Edit"), ("Read",)),
        ('{"tier": "standard"}', ("Edit", "Bash"), ("Edit",)),
    ],
)
def test_a_tier_only_ever_narrows(
    tmp_path: Path, text: str, wanted: tuple[str, ...] | None, left: tuple[str, ...] | None
) -> None:
    cwd = say(tmp_path, text)
    assert read_workspace_permissions(cwd).restrict(wanted) == left
    made = flags(spec(cwd=cwd, tools_allowed=wanted))
    assert (left is None) or f"--tools={','.join(left)}" in made
    assert ("--strict-mcp-config" in made) == ("full" not in text or wanted is not None)


def test_its_note_is_for_the_model(tmp_path: Path) -> None:
    made = spec(cwd=say(tmp_path, '{"note": "Leave `vendor` alone."}'))
    assert ("--append-system-prompt-file", "Leave `vendor` alone.") in made.files


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "truncated"),
        ('{"tier": "most"}', "most"),
        ('{"teir": "full"}', "teir"),
        ('{"tier": "full", "tools": ["Bash"]}', "custom"),
        ('{"tier": "custom", "tools": ["Bash(ls)"]}', "'Bash'"),
        (" " * (LARGEST_FILE + 1), "bytes"),
    ],
)
def test_what_cannot_be_understood_is_told_with_its_file(
    tmp_path: Path, text: str, why: str
) -> None:
    with pytest.raises(WorkspaceInvalidError, match=why) as told:
        read_workspace_permissions(say(tmp_path, text))
    assert PERMISSIONS_FILE in str(told.value)


def test_a_file_may_be_as_large_as_the_bound_says(tmp_path: Path) -> None:
    said = '{"tier": "full"}'
    assert (
        read_workspace_permissions(say(tmp_path, said + " " * (LARGEST_FILE - len(said)))).tier
        == "full"
    )


async def test_a_run_there_fails_before_anything_starts(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    async def script(it: Talk) -> None:
        raise AssertionError("it was asked")

    say(tmp_path, '{"tier": 3}')
    async with open_claude_manager(MockSdk(script), tmp_path) as session:
        failure = (await ran(session)).failure
    assert failure is not None
    assert failure.kind is FailureKind.CONFIG_INVALID
    assert PERMISSIONS_FILE in failure.message


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / PERMISSIONS_FILE).mkdir()
    with pytest.raises(WorkspaceInvalidError, match="directory"):
        read_workspace_permissions(str(tmp_path))
