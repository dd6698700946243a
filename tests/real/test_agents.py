"""Agents that are not installed."""

from pathlib import Path

import pytest

from tests.real.agent_programs import program_of


@pytest.fixture(autouse=True)
def _nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SESSIONMGR_AGENTS", str(tmp_path))
    monkeypatch.delenv("SESSIONMGR_AGENTS_REQUIRED", raising=False)


def test_an_agent_that_is_not_there_is_a_skip_that_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(pytest.skip.Exception, match=r"claude 1\.2\.3 is not .* \.ci/agents"):
        program_of("claude", "1.2.3")
    program = tmp_path / "claude-1.2.3" / "bin" / "claude"
    program.parent.mkdir(parents=True)
    program.touch()
    assert program_of("claude", "1.2.3") == program


def test_where_agents_are_required_it_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SESSIONMGR_AGENTS_REQUIRED", "1")
    with pytest.raises(pytest.fail.Exception, match="is not in"):
        program_of("claude", "1.2.3")
