"""Launch of Claude Code: its command line, its environment, its private files."""

from __future__ import annotations

import pytest

from sessionmgr.adapter import Budget
from sessionmgr.model import (
    Json,
    Permission,
    PermissionMode,
)
from sessionmgr.model.permission import Fidelity
from sessionmgr.process import SessionIdInvalid, build_environment
from sessionmgr.process.environment import NESTING
from sessionmgr_adapters.claude import ClaudeOptions, ClaudeTool
from sessionmgr_adapters.claude.launch import CLAUDE_ENVIRONMENT
from tests.adapters.claude.run_contexts import add, flags, spec


def test_a_new_session_has_the_name_that_we_give_it() -> None:
    made = spec()
    assert "--session-id=new-session" in flags(made)
    assert not any(each.startswith(("--resume", "--fork")) for each in flags(made))


def test_a_session_is_gone_on_with_or_forked() -> None:
    assert "--resume=old" in flags(spec(provider_session_id="old"))
    assert "--session-id=new-session" not in flags(spec(provider_session_id="old"))
    forked = flags(spec(ClaudeOptions(fork=True), provider_session_id="old"))
    assert {"--resume=old", "--fork-session", "--session-id=new-session"} <= forked
    with pytest.raises(SessionIdInvalid):
        spec(provider_session_id="--dangerously-skip-permissions")


def test_each_wish_is_on_the_command_line() -> None:
    made = spec(
        ClaudeOptions(
            fallback_model="haiku",
            settings="settings.json",
            setting_sources=(),
            strict_mcp=True,
            debug_file="/log",
            allow_rules=("Bash(ls *)",),
            partial_messages=False,
        ),
        model="opus",
        effort="low",
        tools_allowed=("Read",),
        tools_denied=("Write",),
        directories=("/other",),
        max_turns=3,
        budget=Budget(usd=1.5),
        schema={"type": "object"},
    )
    assert {
        "--model=opus",
        "--effort=low",
        "--tools=Read",
        "--add-dir=/other",
        "--max-turns=3",
        "--max-budget-usd=1.5",
        '--json-schema={"type":"object"}',
        "--fallback-model=haiku",
        "--settings=settings.json",
        "--setting-sources=",
        "--strict-mcp-config",
        "--debug-file=/log",
        "--allowedTools=Bash(ls *)",
    } <= flags(made)
    assert "--include-partial-messages" not in flags(made)


def test_tools_that_ask_or_schedule_elsewhere_are_denied_and_questions_without_approve() -> None:
    def denied(**fields: object) -> set[str]:
        (found,) = [
            each for each in flags(spec(None, **fields)) if each.startswith("--disallowedTools")
        ]
        return set(found.partition("=")[2].split(","))

    assert {"CronCreate", "RemoteTrigger", "AskUserQuestion"} <= denied()
    assert "AskUserQuestion" not in denied(attended=True)
    assert "Bash(rm *)" in denied(tools_denied=("Bash(rm *)",))


def test_what_is_long_or_private_goes_by_file() -> None:
    made = spec(
        ClaudeOptions(
            append_system_prompt="more",
            mcp_servers={"x": {"command": "y"}},
            agents={"a": {"description": "d", "prompt": "p"}},
            settings=' {"env": {"ANTHROPIC_AUTH_TOKEN": "secret"}}',
            tools=(ClaudeTool("add", "", add),),
        ),
        system_prompt="secret",
    )
    assert "secret" not in str(flags(made))
    assert [flag for flag, _ in made.files] == [
        "--system-prompt-file",
        "--append-system-prompt-file",
        "--mcp-config",
        "--settings",
        "--agents",
    ]
    assert '"sessionmgr":{"type":"sdk"' in dict(made.files)["--mcp-config"]


def test_a_schema_too_long_for_a_command_line_is_told_when_it_is_greeted() -> None:
    short: Json = {"type": "object"}
    long: dict[str, Json] = {"type": "object", "description": "x" * 200_000}
    assert spec(schema=short).introduction == {}
    made = spec(schema=long)
    assert made.introduction == {"jsonSchema": long}
    assert not any(each.startswith("--json-schema") for each in flags(made))
    assert made.serves(spec(schema=long))
    assert not made.serves(spec(schema=short))
    assert not made.serves(spec(schema={**long, "title": "another"}))


def test_the_environment_is_what_the_run_says_and_what_we_need() -> None:
    env = spec(ClaudeOptions(home="/home/of/it", background=False)).command.env
    assert env["A"] == "b"
    assert env["CLAUDE_CONFIG_DIR"] == "/home/of/it"
    assert env["CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"] == "1"
    assert env["CLAUDE_CODE_AUTO_COMPACT_WINDOW"] == "200000"
    given = {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "50000"}
    assert spec(env=given).command.env["CLAUDE_CODE_AUTO_COMPACT_WINDOW"] == "50000"
    assert "IS_SANDBOX" not in env


def test_its_variables_pass_and_marks_of_other_agents_do_not() -> None:
    source = {"ANTHROPIC_API_KEY": "k", "AWS_PROFILE": "p", "OTHER": "x", "PATH": "/bin"}
    marked = {**source, **dict.fromkeys(NESTING, "1")}
    assert build_environment(marked, CLAUDE_ENVIRONMENT) == {
        "ANTHROPIC_API_KEY": "k",
        "PATH": "/bin",
    }
    cloud = build_environment({**source, "CLAUDE_CODE_USE_BEDROCK": "1"}, CLAUDE_ENVIRONMENT)
    assert cloud["AWS_PROFILE"] == "p"


def test_a_child_serves_what_it_can_be_changed_to() -> None:
    one = spec(model="opus")
    bypass = Permission(
        asked=PermissionMode.FULL_AUTO, effective="bypassPermissions", fidelity=Fidelity.EXACT
    )
    assert one.serves(spec(model="haiku", effort="low"))
    assert not one.serves(spec(system_prompt="x"))
    assert not one.serves(spec(max_turns=3))
    assert not one.serves(spec(permission=bypass))
    assert not spec(permission=bypass).serves(one)
    assert spec(permission=bypass).serves(spec(permission=bypass, model="haiku"))
    assert not one.serves(spec(ClaudeOptions(fork=True), provider_session_id="old"))
