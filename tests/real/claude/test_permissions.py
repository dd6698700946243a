"""Effects of Claude Code on disk and network in each permission mode."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Final

import pytest
import trio

from sessionmgr.adapter import Approve
from sessionmgr.model import FailureKind, Json, PermissionMode, RunStatus
from sessionmgr.testing.model_server import (
    ModelCall,
    ModelSay,
    ModelScript,
    ModelServer,
    prompt_with,
)
from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment
from sessionmgr_adapters.claude.adapter import PERMISSIONS
from tests.real.claude.harness import RealAgentHarness, allow, open_house
from tests.real.claude.test_options import SERVER
from tests.real.effect_probes import ALL, INSIDE, READ, EffectProbes, open_canaries

GUARDED: Final = (
    *(".claude/settings.json", ".git/hooks/pre-commit", ".vscode/tasks.json"),
    *(".bashrc", ".mcp.json"),
)
EVERYTHING: Final = ALL.union(GUARDED)
# Actions by mode: without `approve`, and with an `approve` that allows all.
UNASKED: Final[dict[str, set[str]]] = {
    "default": {READ},
    "accept_edits": {READ, INSIDE},
    "plan": {READ},
    "full_auto": EVERYTHING,
    "dangerously_skip_permissions": EVERYTHING,
}
CHANGES: Final = ("plan", "full_auto", "plan", "accept_edits")
ALLOWED: Final[dict[str, set[str]]] = {
    "default": EVERYTHING,
    "accept_edits": EVERYTHING,
    "plan": {READ},
}


def open_all(house: RealAgentHarness) -> AbstractAsyncContextManager[EffectProbes]:
    return open_canaries(house, PERMISSIONS, GUARDED)


async def check_all(
    house: RealAgentHarness, wanted: Mapping[str, set[str]], approve: Approve | None = None
) -> None:
    """Try all actions in these modes, concurrently."""
    async with open_all(house) as canaries, trio.open_nursery() as nursery:
        for mode, effects in wanted.items():
            check = partial(canaries.check, options={"keep": False})
            nursery.start_soon(check, mode, effects, approve)


async def test_without_approve_only_calls_that_the_mode_allows_are_made(
    house: RealAgentHarness,
) -> None:
    await check_all(house, UNASKED)


async def test_what_is_allowed_is_done_but_for_the_effects_of_a_plan(
    house: RealAgentHarness,
) -> None:
    await check_all(house, ALLOWED, allow)


async def test_an_older_one_does_no_more_either(old_house: RealAgentHarness) -> None:
    some = {mode: UNASKED[mode] for mode in ("default", "accept_edits")}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(check_all, old_house, some)
        nursery.start_soon(check_all, old_house, {"plan": ALLOWED["plan"]}, allow)


async def test_the_mode_of_one_run_is_not_that_of_the_next(old_house: RealAgentHarness) -> None:
    # Older versions forget their start mode if it was one without requests.
    async with open_all(old_house) as canaries:
        cage = canaries.cage()
        session = await old_house.session(cwd=cage.work)
        for number, mode in enumerate(CHANGES):
            done, _ = await canaries.try_all(cage, session, f"turn{number}", mode)
            assert done == UNASKED[mode], f"{mode}, turn {number}"


def offered(house: RealAgentHarness) -> set[str]:
    names = {each.name for each in house.server.log.asked[-1].tools}
    return names - {"DeferredToolPlaceholder"}


async def test_tools_that_are_denied_are_not_there_and_rules_are_kept(
    house: RealAgentHarness,
) -> None:
    script: ModelScript = [
        [ModelCall(tool="Bash", input={"command": "touch x", "description": "d"})],
        [ModelSay(text="done")],
    ]
    played = await house.play(
        script, await house.session("full_auto"), tools_denied=["Bash(touch *)", "WebFetch"]
    )
    assert not Path(house.work, "x").exists()
    assert played.result.permission_denials
    assert "Bash" in offered(house)
    assert not offered(house) & {"WebFetch", "CronCreate", "AskUserQuestion", "ScheduleWakeup"}


async def test_only_the_tools_that_are_allowed_are_there(house: RealAgentHarness) -> None:
    played = await house.play([[ModelSay(text="done")]], tools_allowed=["Read", "Bash"])
    assert played.result.status is RunStatus.COMPLETED, played.result.failure
    assert offered(house) == {"Read", "Bash"}
    await house.play([[ModelSay(text="done")]], tools_allowed=[])
    assert offered(house) == set()


async def test_what_the_workspace_itself_says_narrows_a_run(house: RealAgentHarness) -> None:
    (house.work / "PERMISSIONS.json").write_text('{"tier": "readonly", "note": "Only look."}')
    script: ModelScript = [
        [ModelCall(tool="Bash", input={"command": "touch x", "description": "d"})],
        [ModelCall(tool="Write", input={"file_path": str(house.work / "y"), "content": "y"})],
        [ModelSay(text="done")],
    ]
    await house.play(script, await house.session("full_auto"))
    assert offered(house) <= {"Read", "Glob", "Grep", "WebFetch", "WebSearch"}
    assert "Read" in offered(house)
    assert "Only look." in str(house.server.log.asked[-1].body["system"])
    assert sorted(each.name for each in house.work.iterdir()) == ["PERMISSIONS.json"]


# At the end of a server's program: write to a file that it has listed its tools.
KNOWN: Final = """
    if asked["method"] == "tools/list":
        open(sys.argv[1], "w").close()
"""


async def test_of_servers_only_the_tools_that_are_allowed_are_used(
    server: ModelServer, hermitage: IsolatedEnvironment, claude_program: tuple[str, Path]
) -> None:
    """Also with servers of the user, in a mode without other requests."""
    program = hermitage.root / "server.py"
    program.write_text(SERVER.replace("[ADD]", '[ADD, {**ADD, "name": "sub"}]') + KNOWN)
    gates = {name: hermitage.root / f"{name}-is-known" for name in ("sums", "theirs")}
    servers: dict[str, Json] = {
        name: {"type": "stdio", "command": sys.executable, "args": [str(program), str(gate)]}
        for name, gate in gates.items()
    }
    env = {**hermitage.claude(retries=1), "IS_SANDBOX": "1"}
    home = Path(env["CLAUDE_CONFIG_DIR"])
    home.mkdir(parents=True, exist_ok=True)
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"theirs": servers["theirs"]}}))
    names = ("mcp__theirs__add", "mcp__sums__add", "mcp__sums__sub")
    calls: ModelScript = [*([ModelCall(tool=each)] for each in names), [ModelSay(text="done")]]

    def once_known(name: str) -> ModelScript:
        """Return a script that first waits for a server: older versions do so for two seconds."""
        waits = ModelSay(text="I wait.", deltas=2, until=str(gates[name]))
        return [[waits, ModelCall(tool="shell", input={"command": "true"})], *calls]

    async def used(house: RealAgentHarness, script: ModelScript, *allowed: str) -> list[bool]:
        gates["sums"].unlink(missing_ok=True)
        session = await house.session("full_auto")
        before = len(server.log.asked)
        options = house.options(mcp_servers={"sums": servers["sums"]})
        played = await house.play(script, session, options=options, tools_allowed=allowed)
        assert played.result.status is RunStatus.COMPLETED, played.result.failure
        told = [each.text for asked in server.log.asked[before:] for each in asked.results]
        return [each == "it is five" for each in told[-len(names) :]]

    async with open_house(server, claude_program[1], hermitage.work, env) as house:
        assert await used(house, calls, "Read") == [False, False, False]
        assert await used(house, once_known("sums"), "mcp__sums__add") == [False, True, False]
        assert await used(house, once_known("sums"), "Read", "mcp__sums") == [False, True, True]
        gates["theirs"].unlink(missing_ok=True)
        played = await house.play(once_known("theirs"), await house.session("full_auto"))
        assert (
            played.result.tool_calls.failed == 2
        )  # without a list of tools the user's server is available


async def test_unknown_tools_are_refused_before_the_prompt(
    house: RealAgentHarness,
) -> None:
    for wish in ({"tools_allowed": ["Bash(git *)"]}, {"tools_denied": ["bash"]}):
        played = await house.play([[ModelSay(text="never")]], **wish)  # type: ignore[arg-type]
        assert played.result.failure is not None
        assert played.result.failure.kind is FailureKind.CONFIG_INVALID
        assert "'Bash'" in played.result.failure.message
    assert not house.server.log.asked


GRANTS: Final = "sed -n 1d; echo '{\"hookSpecificOutput\":%s}'"
BEFORE: Final = '{"hookEventName":"PreToolUse","permissionDecision":"allow"}'
WHEN_ASKED: Final = '{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}'
RULES: Final[Json] = {"allow": ["Bash(touch *)", "Write", "Edit", "mcp__theirs", "Skill"]}
SKILL: Final = """---
name: %s
description: d
permissionMode: %s
allowed-tools: Bash(touch *), Write
---
You do.
"""


def hook(event: str, says: str) -> Json:
    command: Json = {"type": "command", "command": GRANTS % says}
    return {event: [{"matcher": "", "hooks": [command]}]}


@pytest.mark.parametrize(
    "settings",
    [
        {"permissions": RULES},
        {"hooks": hook("PreToolUse", BEFORE)},
        {"hooks": hook("PermissionRequest", WHEN_ASKED)},
        {},
    ],
    ids=["by rules", "by hooks", "by hooks when asked", "by nothing"],
)
async def test_nothing_is_changed_by_a_plan_whatever_the_user_has_allowed(
    any_house: RealAgentHarness, settings: dict[str, Json]
) -> None:
    """Neither commands, edits, servers and skills of the user, nor sub-agents with other modes."""
    house, home = any_house, Path(any_house.env["CLAUDE_CONFIG_DIR"])
    program = house.work.parent / "server.py"
    program.write_text(SERVER.replace('if "id" not in asked:', WRITES))
    theirs: Json = {"type": "stdio", "command": sys.executable, "args": [str(program)]}
    trusted: Json = {str(house.work): {"hasTrustDialogAccepted": True}}
    for place, text in (
        ("settings.json", json.dumps(settings)),
        (".claude.json", json.dumps({"mcpServers": {"theirs": theirs}, "projects": trusted})),
        ("skills/sk/SKILL.md", SKILL % ("sk", "plan")),
        ("agents/free.md", SKILL % ("free", "bypassPermissions")),
        ("agents/edits.md", SKILL % ("edits", "acceptEdits")),
        ("agents/hooked.md", HOOKED),
    ):
        (home / place).parent.mkdir(parents=True, exist_ok=True)
        (home / place).write_text(text)

    def tries(place: str) -> ModelScript:
        made = house.work / place
        return [
            [ModelCall(tool="shell", input={"command": f"touch {made}-by-command"})],
            [ModelCall(tool="write", input={"path": f"{made}-by-tool", "content": "x"})],
            [ModelCall(tool="mcp__theirs__add", input={"path": f"{made}-by-server"})],
        ]

    agents = ("free", "edits", "hooked", "general-purpose")
    script: ModelScript = [
        *(
            [ModelCall(tool="Agent", input={
                "prompt": prompt_with([*tries(each), [ModelSay(text="x")]]),
                "description": "d", "subagent_type": each,
            })]
            for each in agents
        ),
        [ModelCall(tool="Skill", input={"skill": "sk"})],
        *tries("plain"),
        [ModelCall(tool="shell", input={"command": "pwd"})],
        [ModelSay(text="done")],
    ]  # fmt: skip
    session = await house.session("plan", approve=allow)
    for keep in (True, True, False):
        options = house.options(background=False, keep=keep)
        played = await house.play(script, session, options=options)
        assert played.result.text == "done", played.result.failure
        assert list(house.work.iterdir()) == []
        assert played.result.permission == PERMISSIONS.ask("claude", PermissionMode.PLAN)
    looked = house.server.log.asked[-1].results[0].text
    assert (house.work.name in looked) is ("hooks" not in settings), looked
    await house.play(
        [*tries("plain"), [ModelSay(text="done")]], session, permission_mode="full_auto"
    )
    assert len(list(house.work.iterdir())) == 3


HOOKED: Final = f"""---
name: hooked
description: d
hooks:
  PreToolUse:
    - matcher: ""
      hooks:
        - type: command
          command: {json.dumps(GRANTS % BEFORE)}
---
You do.
"""
WRITES: Final = """if "path" in str(asked):
        open(asked["params"]["arguments"]["path"], "w").close()
    if "id" not in asked:"""


async def test_rules_that_allow_something_are_refused_in_a_plan(
    any_house: RealAgentHarness,
) -> None:
    options = any_house.options(allow_rules=["Bash(touch *)"])
    session = await any_house.session("plan")
    played = await any_house.play([[ModelSay(text="never")]], session, options=options)
    assert played.result.failure is not None
    assert "allow_rules" in played.result.failure.message
    assert not any_house.server.log.asked
