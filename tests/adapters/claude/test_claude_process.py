"""Reports of a process about itself: its version, its mode."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from sessionmgr.adapter.kit.program_version import read_version, version_numbers
from sessionmgr.process import Command, open_launcher
from sessionmgr_adapters.claude import ClaudeAdapter
from sessionmgr_adapters.claude.claude_process import mode_failure, version_failure


def test_versions_are_compared_by_their_numbers() -> None:
    assert version_numbers("2.1.327 (Claude Code)") == (2, 1, 327)
    assert version_numbers(None) is None
    assert version_failure("2.1.197") is None
    assert version_failure("2.10.0") is None
    for old in ("2.1.196", "1.9.999", ""):
        failure = version_failure(old)
        assert failure is not None
        assert "2.1.197" in failure.message


def test_an_unknown_mode_is_as_wide_as_any() -> None:
    assert mode_failure("default", "plan") is None
    assert mode_failure("default", None) is None
    assert mode_failure("bypassPermissions", "default") is None
    for wide in ("acceptEdits", "auto", "bypassPermissions", "new"):
        assert mode_failure("default", wide) is not None
    assert mode_failure("plan", "default") is not None


async def test_a_program_is_asked_for_its_version_where_it_does_not_say(tmp_path: Path) -> None:
    program = tmp_path / "old"
    program.write_text("#!/bin/sh\necho 2.1.150 '(Claude Code)'\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    like = Command(argv=("x",), cwd=str(tmp_path), env={"PATH": "/usr/bin:/bin"})
    async with open_launcher() as launcher:
        assert await read_version(launcher, (str(program),), like) == "2.1.150 (Claude Code)"
        assert await read_version(launcher, ("/bin/sh", "-c", "exit 3"), like) == ""


async def test_it_says_whether_its_program_is_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    health = await ClaudeAdapter().health()
    assert (health.state, "on PATH" in health.detail) == ("skip", True)
    program = tmp_path / "claude"
    program.touch(0o755)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-any")
    assert (await ClaudeAdapter().health()).state == "ok"
