"""Files in which the user of an agent allows tools for good."""

from pathlib import Path

import pytest

from sessionmgr_adapters.acp.user_rules import (
    CODEX_RULES,
    GEMINI_RULES,
    GOOSE_RULES,
    RuleFiles,
    allowing_file,
)

CASES: list[tuple[tuple[RuleFiles, ...], str, str, bool]] = [
    ((CODEX_RULES,), ".codex/rules/a.rules", 'prefix_rule(pattern=["ls"])\n', True),
    ((CODEX_RULES,), ".codex/rules/a.rules", "p = prefix_rule\n", True),
    (
        (CODEX_RULES,),
        ".codex/rules/a.rules",
        '# none\n\nprefix_rule(pattern=["rm"], decision="forbidden")\n',
        False,
    ),
    ((CODEX_RULES,), ".codex/a.rules", "elsewhere", False),
    (GEMINI_RULES, ".gemini/policies/a.toml", '[[rule]]\ndecision = "allow"\n', True),
    (GEMINI_RULES, ".gemini/policies/a.toml", '[[rule]]\ndecision = "deny"\n', False),
    (GEMINI_RULES, ".gemini/settings.json", '{"tools": {"allowed": ["x"]}}', True),
    (GEMINI_RULES, ".gemini/settings.json", '{"tools": {"allowed": []}}', False),
    (GEMINI_RULES, "work/.gemini/settings.json", '{"mcpServers": {"a": {"trust": true}}}', True),
    ((GOOSE_RULES,), ".config/goose/permission.yaml", "user:\n  always_allow:\n  - shell\n", True),
    ((GOOSE_RULES,), ".config/goose/permission.yaml", '{"always_allow": ["shell"]}', True),
    (
        (GOOSE_RULES,),
        ".config/goose/permission.yaml",
        "user:\n  always_allow: []\n  never_allow:\n  - shell\n",
        False,
    ),
]


@pytest.mark.parametrize(("files", "name", "text", "allows"), CASES)
def test_a_file_that_allows_something_is_found(
    files: tuple[RuleFiles, ...], name: str, text: str, allows: bool, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    found = allowing_file(files, {"HOME": str(tmp_path)}, str(tmp_path / "work"))
    assert found == (str(file) if allows else None)


def test_the_first_variable_that_is_set_names_the_directory(tmp_path: Path) -> None:
    for name in ("own/rules", "home/.codex/rules"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "home/.codex/rules/a.rules").write_text("allow()", encoding="utf-8")
    env = {"HOME": str(tmp_path / "home")}
    assert allowing_file((CODEX_RULES,), env, "/") is not None
    assert allowing_file((CODEX_RULES,), {**env, "CODEX_HOME": str(tmp_path / "own")}, "/") is None
    assert allowing_file((CODEX_RULES,), {}, "/") is None


def test_a_file_that_cannot_be_read_counts(tmp_path: Path) -> None:
    file = tmp_path / "rules" / "a.rules"
    file.mkdir(parents=True)
    assert allowing_file((CODEX_RULES,), {"CODEX_HOME": str(tmp_path)}, "/") == str(file)
