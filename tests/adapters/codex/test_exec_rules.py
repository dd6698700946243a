"""The user's rules that allow commands outside of the sandbox."""

from __future__ import annotations

from pathlib import Path

import pytest

from sessionmgr.model import FailureKind
from sessionmgr_adapters.codex.exec_rules import loose_rules
from tests.adapters.codex.mock_agent import (
    Talk,
    begin,
    end,
    opening,
    thread_of,
)
from tests.adapters.codex.mocked_manager import failure, play


@pytest.mark.parametrize(
    ("rules", "allows"),
    [
        ('prefix_rule(pattern=["touch"], decision="allow")', True),
        ('prefix_rule(\n  pattern = ["touch"],\n)', True),
        ('prefix_rule(pattern=["rm"], decision = "forbidden")', False),
        ('prefix_rule(pattern=["rm"], decision=\'prompt\')\n# prefix_rule(pattern=["a"])', False),
        ('prefix_rule(pattern=["rm"], decision="prompt")\nnetwork_rule(host="a")', True),
        ("", False),
        ('"""Mine."""\nhost_executable(name="git", paths=["/usr/bin/git"])\n', False),
        ('prefix_rule(pattern=["a"], decision="allow", justification=\'decision="prompt"\')', True),
        ('p = prefix_rule\np(pattern=["a"], decision="prompt")', True),
        ('prefix_rule(pattern=["a"], decision="prompt" if True else "allow")', True),
        ('prefix_rule(pattern=["a"], decision="prompt", **{"decision": "allow"})', True),
        ('prefix_rule(pattern=[prefix_rule(pattern=["a"])], decision="prompt")', True),
        ('host_executable(name=prefix_rule(pattern=["a"]), paths=[])', True),
        ('[prefix_rule(pattern=[each], decision="prompt") for each in ["a"]]', True),
        ('load("other.rules", "rules")', True),
        ('prefix_rule(pattern=["a"], # \rdecision="prompt"\n)', True),
        ('prefix_rule(pattern=["a"], decision="prompt")\r\n', False),
        ("this is no rule", True),
        ('prefix_rule(pattern=["a"], decision="prompt"', True),
        ("(" * 100_000, True),
    ],
)
def test_rules_that_allow_something_are_found(tmp_path: Path, rules: str, allows: bool) -> None:
    for place in ("home", "work/.codex"):
        file = tmp_path / place / "rules" / "default.rules"
        file.parent.mkdir(parents=True)
        file.write_bytes(rules.encode())
        found = loose_rules(tmp_path / "home", tmp_path / "work" / "inner")
        assert found == (file if allows else None)
        file.unlink()


def test_what_codex_cannot_read_either_allows_nothing(tmp_path: Path) -> None:
    (tmp_path / "home" / "rules" / "default.rules").mkdir(parents=True)
    assert loose_rules(tmp_path / "home", tmp_path / "work") is None


@pytest.mark.parametrize(
    ("mode", "ruled", "runs"),
    [
        ("default", False, True),
        ("accept_edits", False, True),
        ("plan", False, False),
        ("full_auto", False, False),
        ("full_auto", True, True),
        ("dangerously_skip_permissions", False, True),
    ],
)
async def test_rules_that_let_commands_out_are_no_part_of_a_mode_that_confines(
    tmp_path: Path, mode: str, ruled: bool, runs: bool
) -> None:
    (tmp_path / "rules").mkdir()
    file = tmp_path / "rules" / "default.rules"
    file.write_text('prefix_rule(pattern=["touch"], decision="allow")')

    async def simple(it: Talk) -> None:
        call = await opening(it)
        begin(it, call)
        end(it, thread_of(call))

    found = await play(simple, mode=mode, options={"rules": ruled, "home": str(tmp_path)})
    if runs:
        assert found[0].status == "completed"
    else:
        kind, message = failure(found)
        assert kind == FailureKind.PERMISSION_REFUSED
        assert message.startswith(
            f"the rules in {file} allow commands outside of the sandbox, in {mode}"
        )
