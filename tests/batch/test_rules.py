"""Approval rules: which requests they allow, and the messages about invalid ones."""

import hashlib
from pathlib import Path

import pytest

from sessionmgr.adapter import Allow, ApprovalRequest
from sessionmgr.batch import RulesInvalid, read_rules
from sessionmgr.batch.approval_paths import matches
from sessionmgr.model import Json


def bash(command: Json, cwd: str = "/work") -> ApprovalRequest:
    return ApprovalRequest(
        tool_name="Bash", tool_input={"command": command}, effect="command", cwd=cwd
    )


def edit(*paths: str, cwd: str = "/work") -> ApprovalRequest:
    return ApprovalRequest(tool_name="Edit", effect="edit", paths=paths, cwd=cwd)


async def allowed(tmp_path: Path, rules: str, asked: ApprovalRequest) -> bool:
    path = tmp_path / "rules.toml"
    path.write_text(rules)
    return isinstance(await read_rules(path)(asked), Allow)


GIT = """
[[rule]]
command = "git push"
decision = "deny"

[[rule]]
tool = "Bash"
command = "git"
decision = "allow"

[[rule]]
command = "echo 'two words'"
decision = "allow"
"""


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("git status", True),
        ("git", True),
        ("gitk", False),
        ("git status && git log", True),
        ("git status; rm -rf /", False),
        ("git status | sh", False),
        ("git status & git push", False),
        ("git push", False),
        ("git log `rm x`", False),
        ("git log $(rm x)", False),
        ("git log > /etc/passwd", False),
        ("git log 'a;b'", True),
        ("git log\nrm x", False),
        ("PATH=/x git log", False),
        ("git log 'unfinished", False),
        ("git push `x`", False),
        ("echo 'two words' more", True),
        ("echo two words", False),
        ("", False),
        (["git", "status; rm"], True),
        (["rm", "x"], False),
    ],
)
async def test_a_command_is_allowed_by_how_it_begins(
    tmp_path: Path, command: Json, expected: bool
) -> None:
    assert await allowed(tmp_path, GIT, bash(command)) is expected


SRC = """
[[rule]]
path = "**/secret*"
decision = "deny"
reason = "no secrets"

[[rule]]
path = "src/**"
cwd = "/work"
decision = "allow"
"""


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (edit("/work/src/a.py"), True),
        (edit("src/deep/a.py"), True),
        (edit("src/../a.py"), False),
        (edit("/work/src/a.py", "/work/b.py"), False),
        (edit("/work/src/secrets.txt"), False),
        (edit("src/a.py", "secret"), False),
        (edit("src/a.py", cwd="/other"), False),
        (edit(), False),
    ],
)
async def test_paths_are_seen_from_the_jobs_directory(
    tmp_path: Path, asked: ApprovalRequest, expected: bool
) -> None:
    assert await allowed(tmp_path, SRC, asked) is expected


async def test_the_first_matching_rule_gives_its_reason(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text(SRC)
    decision = await read_rules(tmp_path / "rules.toml")(edit("/x/secret"))
    assert (decision.reason, decision.by) == ("no secrets", "rules")


async def test_a_request_without_a_matching_rule_is_denied(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text(GIT)
    decision = await read_rules(tmp_path / "rules.toml")(ApprovalRequest(tool_name="Read"))
    assert (isinstance(decision, Allow), decision.reason) == (False, "no rule allows it")


async def test_a_pattern_of_a_tool_can_allow_everything(tmp_path: Path) -> None:
    rules = '[[rule]]\ntool = "mcp__*"\ndecision = "allow"'
    assert await allowed(tmp_path, rules, ApprovalRequest(tool_name="mcp__x", tool_input="y"))
    assert not await allowed(tmp_path, rules, ApprovalRequest(tool_name="Bash"))


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("rule = 3", "", "no rules"),
        ("[[rule]]\ndecison = 'allow'", ":1", "did you mean 'decision'"),
        ("[[rule]]\nzzz = 1", ":1", "unknown field .zzz.; known: "),
        ("[[rule]]\ntool = 'x'\ndecision='allow'\n[[rule]]\ntool = 3", ":4", "tool: expected"),
        ("[[rule]]\ndecision = 'maybe'", ":1", "maybe"),
        ("[[rule]]\ndecision = 'allow'", ":1", "allows everything"),
        ("[[rule]]\ncommand = \"a 'b\"\ndecision = 'allow'", ":1", "quote is not closed"),
        ("[[rule]]\ncommand = ' '\ndecision = 'allow'", ":1", "command: ' ' is not one plain"),
        ("[[rule]]\ncommand = '\"\"'\ndecision = 'deny'", ":1", "first words of one command"),
        ("[[rule]]\ncommand = 'a; b'\ndecision = 'deny'", ":1", "'a; b': use the first words"),
        ("[[rule]]\ncommand = 'npm run *'\ndecision = 'deny'", ":1", "without patterns"),
        ("[[rule]]\ncommand = 'a > b'\ndecision = 'allow'", ":1", "'a > b': use"),
        ("[[rule]]\ncommand = '$X'\ndecision = 'deny'", ":1", r"'\$X' is not one plain command"),
        ("[rules]", "", "unknown table .rules."),
        ("[[rule", "", "invalid TOML"),
        ("", "", "no rules"),
        ("rule = [{tool = 'x', decision = 'allow'}, {tool = 3}]", "", "tool: expected"),
    ],
)
def test_the_error_of_an_invalid_rule_names_its_place(
    tmp_path: Path, text: str, where: str, what: str
) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(text)
    with pytest.raises(RulesInvalid, match=what) as refused:
        read_rules(path)
    assert refused.value.where == f"{path}{where}"


def test_only_the_file_with_the_hash_that_is_named_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(GIT)
    read_rules(path, sha256=hashlib.sha256(GIT.encode()).hexdigest())
    with pytest.raises(RulesInvalid, match="has changed since it was trusted"):
        read_rules(path, sha256="0" * 64)


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RulesInvalid, match="No such file"):
        read_rules(tmp_path / "none")
    (tmp_path / "bytes").write_bytes(b"\xff")
    with pytest.raises(RulesInvalid, match="UTF-8"):
        read_rules(tmp_path / "bytes")


@pytest.mark.parametrize(
    ("path", "pattern", "expected"),
    [
        ("/a/b", "/a/*", True),
        ("/a/b/c", "/a/*", False),
        ("/a/b/c", "/a/**", True),
        ("/a", "/a/**", True),
        ("/ab", "/a/**", False),
        ("/a/x/y/c.py", "/a/**/*.py", True),
        ("/a/c.py", "/a/**/*.py", True),
        ("/a/b", "/a/?", True),
        ("/a.b", "/a?b", True),
        ("/axb", "/a.b", False),
    ],
)
def test_patterns_of_paths(path: str, pattern: str, expected: bool) -> None:
    assert matches(path, pattern, "/") is expected
