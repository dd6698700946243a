"""Tools of a run that names its tools."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from sessionmgr.model import FailureKind, Json
from sessionmgr.testing.mock_sdk import MockSdk
from sessionmgr_adapters.claude import ClaudeHook, ClaudeOptions, ClaudeTool
from sessionmgr_adapters.claude.functions import TOOL_ACCESS_HOOK
from sessionmgr_adapters.claude.tool_access import unknown_tool_fault
from tests.adapters.claude.mock_agent import Talk
from tests.adapters.claude.mocked_manager import open_claude_manager
from tests.adapters.claude.run_contexts import add, flags, spec

OPTIONS = ClaudeOptions(
    mcp_servers={"sums": {"command": "sums"}, "my notes": {"command": "notes"}},
    tools=(ClaudeTool("add", "", add), ClaudeTool("weigh", "", add, reads_only=True)),
)


@pytest.mark.parametrize(
    ("names", "own", "servers", "functions"),
    [
        ((), "", set[str](), []),
        (("Read", "Bash"), "Read,Bash", set[str](), []),
        (("mcp__sums__add",), "", {"sums"}, []),
        (("Read", "mcp__my_notes", "weigh"), "Read", {"my notes", "sessionmgr"}, ["weigh"]),
        (("mcp__sums__*", "mcp__sessionmgr__add"), "", {"sums", "sessionmgr"}, ["add"]),
    ],
)
def test_nothing_is_there_but_what_is_named(
    names: tuple[str, ...], own: str, servers: set[str], functions: list[str]
) -> None:
    made = spec(OPTIONS, tools_allowed=names)
    assert {f"--tools={own}", "--strict-mcp-config"} <= flags(made)
    told = dict(made.files).get("--mcp-config", "")
    assert {
        each for each in (*OPTIONS.mcp_servers, "sessionmgr") if f'"{each}":' in told
    } == servers
    assert [each.name for each in made.functions.tools] == functions


def test_where_nothing_is_named_all_is_there() -> None:
    made = spec(OPTIONS)
    assert "--strict-mcp-config" not in flags(made)
    assert all(f'"{each}":' in dict(made.files)["--mcp-config"] for each in OPTIONS.mcp_servers)
    assert "hooks" not in made.functions.introduction


async def test_what_else_a_server_has_is_denied_beside_the_callers_hooks() -> None:
    options = ClaudeOptions(
        mcp_servers=OPTIONS.mcp_servers, hooks=(ClaudeHook("PreToolUse", unheard, matcher="Bash"),)
    )
    made = spec(options, tools_allowed=("mcp__sums__add", "mcp__my_notes"))
    hooks = made.functions.introduction["hooks"]
    assert isinstance(hooks, dict)
    assert [
        isinstance(each, dict) and each["matcher"] for each in _listed(hooks["PreToolUse"])
    ] == [
        "mcp__.*",
        "Bash",
    ]

    async def denies(name: str) -> bool:
        return "deny" in str(await made.functions.call_hook(TOOL_ACCESS_HOOK, {"tool_name": name}))

    assert not await denies("mcp__sums__add")
    assert not await denies("mcp__my_notes__any")
    for name in ("mcp__sums__add_all", "mcp__sums__sub", "mcp__my_notesy__any", "mcp__other__add"):
        assert await denies(name), name
    assert await made.functions.call_hook("0", {}) == {"heard": True}


async def unheard(event: dict[str, Json]) -> dict[str, Json]:
    return {"heard": True}


def _listed(found: Json) -> list[Json]:
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize(
    ("names", "nearest"),
    [
        (("Read", "Nonsense"), "'Nonsense'"),
        (("bash",), "'Bash'"),
        (("Bash(git *)",), "'Bash'"),
        (("mcp__sums__",), "'mcp__sums'"),
        (("mcp__other__add",), "mcp_servers"),
        (("Add",), "'add'"),
    ],
)
def test_unknown_names_are_refused_with_the_nearest(names: tuple[str, ...], nearest: str) -> None:
    assert nearest in str(unknown_tool_fault(names, (), OPTIONS))


@pytest.mark.parametrize("name", ["bash", "Wriet", "Wriet(x)", "add"])
def test_what_denies_nothing_is_refused_as_well(name: str) -> None:
    assert "tools_denied" in str(unknown_tool_fault(None, ("Bash", name), OPTIONS))
    rules = ("Bash", "Bash(rm *)", "Agent(Explore)", "mcp__theirs__x", "mcp__sessionmgr__add")
    assert unknown_tool_fault(None, rules, OPTIONS) is None


async def test_such_a_run_is_not_begun(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        raise AssertionError("it was started")

    async with open_claude_manager(MockSdk(script)) as session:
        for wish in ({"tools_allowed": ["Nonsense"]}, {"tools_denied": ["bash"]}):
            run = await session.submit("hi", **wish)  # type: ignore[arg-type]
            failure = (await run.result()).failure
            assert failure is not None
            assert failure.kind is FailureKind.CONFIG_INVALID
            assert next(iter(wish)) in failure.message
