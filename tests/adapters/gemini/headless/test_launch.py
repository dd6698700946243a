"""The command line, environment and files of a headless Gemini."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from sessionmgr.adapter import Options, RunSpec
from sessionmgr.model import Permission, PermissionMode
from sessionmgr_adapters.gemini import GeminiOptions
from sessionmgr_adapters.gemini.headless import GeminiHeadlessAdapter
from sessionmgr_adapters.gemini.headless.launch import (
    LONGEST_PROMPT,
    HeadlessSpec,
    gemini_environment,
    gemini_home,
    prompt_text,
)
from sessionmgr_adapters.gemini.permissions import HEADLESS_PERMISSIONS, policy_rules

PRIVATE = Path("/private")


def spec(**fields: object) -> HeadlessSpec:
    return HeadlessSpec(
        **{  # type: ignore[arg-type]
            "program": ("gemini",),
            "cwd": "/work",
            "env": {"TMPDIR": "/tmp"},
            "mode": "default",
            "session": "s-1",
            **fields,
        }
    )


def test_what_is_wished_stands_on_the_command_line() -> None:
    made = spec(mode="yolo", model="pro", directories=("/a", "/b c"), policy="x")
    assert made.command(PRIVATE).argv == (
        *("gemini", "--output-format=stream-json", "--approval-mode=yolo", "--model=pro"),
        *("--include-directories=/a", "--include-directories=/b c"),
        *("--admin-policy=/private/policy.toml", "--session-id=s-1"),
    )
    assert made.files == {"policy.toml": "x"}


def test_a_session_is_resumed_by_its_id() -> None:
    assert spec(is_resumed=True).command(PRIVATE).argv[-1] == "--resume=s-1"


def test_temporary_files_are_private() -> None:
    env = spec().command(PRIVATE).env
    assert env == {"TMPDIR": "/private/tmp", "GEMINI_CLI_NO_RELAUNCH": "true"}


def test_a_system_prompt_is_a_file_and_images_are_in_a_directory_that_may_be_read() -> None:
    made = spec(system_prompt="Be kind.")
    assert made.files == {"system.md": "Be kind."}
    command = made.command(PRIVATE, [PRIVATE / "images" / "image0.png"])
    assert command.env["GEMINI_SYSTEM_MD"] == "/private/system.md"
    assert "--include-directories=/private/images" in command.argv


@pytest.mark.parametrize(
    ("prompt", "sent"),
    [
        ("hi", "hi"),
        ("/help", " /help"),
        ("a /help", "a /help"),
        ("--help", "--help"),
        ("\ud800", "?"),
    ],
)
def test_a_prompt_is_no_command(prompt: str, sent: str) -> None:
    assert prompt_text(prompt, GeminiOptions()).decode() == sent


def test_commands_and_images_may_be_wanted() -> None:
    images = [Path("/a b/image0.png"), Path("/c(d)/image1.png")]
    text = prompt_text("/do it", GeminiOptions(slash_commands=True), images).decode()
    assert text == "/do it\n@/a\\ b/image0.png\n@/c\\(d\\)/image1.png"


def test_a_home_of_its_own_starts_at_the_working_directory() -> None:
    options = GeminiOptions(home="h")
    env = gemini_environment({"HOME": "/home/x"}, options, "/work")
    assert (env["HOME"], env["GEMINI_CLI_HOME"]) == ("/home/x", "/work/h")
    assert gemini_home(env) == Path("/work/h/.gemini")
    assert gemini_home({"HOME": "/home/x"}) == Path("/home/x/.gemini")
    assert gemini_home({}) is None


@pytest.mark.parametrize("mode", ["default", "auto_edit", "plan"])
def test_no_mode_that_allows_less_can_be_left(mode: str) -> None:
    rules = tomllib.loads(policy_rules(mode, ["mcp_x_*"]))["rule"]
    assert {each["decision"] for each in rules} == {"deny"}
    assert {"enter_plan_mode", "exit_plan_mode", "mcp_x_*"} <= {*rules[0]["toolName"]}


def test_the_widest_mode_needs_rules_only_for_denied_tools() -> None:
    assert policy_rules("yolo", []) == ""
    [rule] = tomllib.loads(policy_rules("yolo", ["a", "a"]))["rule"]
    assert rule == {"toolName": ["a"], "decision": "deny", "priority": 999}


def asked(**fields: object) -> RunSpec:
    mode: Permission = HEADLESS_PERMISSIONS.ask("gemini", PermissionMode.DEFAULT)
    known: dict[str, object] = {
        "prompt": "hi",
        "cwd": "/work",
        "env": {},
        "permission": mode,
        "options": GeminiOptions(headless=True),
        **fields,
    }
    return RunSpec(**known)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"prompt": "é" * (LONGEST_PROMPT // 2 + 1)}, "prompt: it has 8388610 bytes"),
        ({"directories": ("/a", "/b,c")}, "directories: Gemini takes the comma in '/b,c'"),
        ({"options": GeminiOptions(auth="vertex-ai")}, "options.auth: it works over ACP only"),
        ({"tools_denied": ("ok", "Bash(git *)")}, "tools_denied: 'Bash(git *)' is not the name"),
    ],
)
def test_what_can_never_succeed_is_refused(fields: dict[str, object], words: str) -> None:
    assert (GeminiHeadlessAdapter.fault(asked(**fields)) or "").startswith(words)


def test_what_can_succeed_is_not_refused() -> None:
    fields = {"tools_denied": ("mcp_*", "web_fetch"), "directories": ("/b",)}
    assert GeminiHeadlessAdapter.fault(asked(prompt="x" * LONGEST_PROMPT, **fields)) is None


def test_plain_text_reports_less() -> None:
    whole = GeminiHeadlessAdapter.offers(GeminiOptions())
    plain = GeminiHeadlessAdapter.offers(GeminiOptions(output="text"))
    assert (whole.tool_use, whole.usage) == ("native", "native")
    assert (plain.tool_use, plain.usage) == ("unsupported", "unsupported")
    assert plain.streaming == "native"
    with pytest.raises(AssertionError):
        GeminiHeadlessAdapter.offers(Options())
