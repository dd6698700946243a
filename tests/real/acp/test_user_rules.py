"""What the user of an agent allows for good does not widen a plan: it is refused, or outranked."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from sessionmgr.model import FailureKind, PermissionMode
from sessionmgr.testing.model_server import IsolatedEnvironment, ModelSay, ModelServer
from tests.acp_permissions import READS
from tests.real.acp.agents import installed_agent
from tests.real.acp.harness import open_house
from tests.real.acp.permission_probes import open_probes
from tests.real.acp.test_permissions import place as place

SOME: Final = ("write inside", "command inside", "connect by a command", "MCP tool")
Widen: TypeAlias = Callable[[Mapping[str, str], Path], None]


def put(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def claude(env: Mapping[str, str], _: Path) -> None:
    allowed = ["Bash", "Write", "Edit", "mcp__lab", "mcp__lab__touch_file"]
    settings = {"permissions": {"allow": allowed}}
    put(Path(env["CLAUDE_CONFIG_DIR"]) / "settings.json", json.dumps(settings))


def opencode(env: Mapping[str, str], work: Path) -> None:
    rules = {
        "*": "allow",
        "edit": "allow",
        "bash": {"*": "allow"},
        "lab_*": "allow",
        "lab_touch_file": "allow",
    }
    put(
        Path(env["XDG_CONFIG_HOME"]) / "opencode" / "opencode.json",
        json.dumps({"permission": rules}),
    )
    put(work / "opencode.json", json.dumps({"permission": rules}))


def goose(env: Mapping[str, str], _: Path) -> None:
    names = ["shell", "write", "edit", "developer__shell", "lab__touch_file"]
    lists = {"always_allow": names, "ask_before": [], "never_allow": []}
    rules = {"user": lists, "smart_approve": lists}
    put(Path(env["XDG_CONFIG_HOME"]) / "goose" / "permission.yaml", json.dumps(rules))


def gemini(env: Mapping[str, str], _: Path) -> None:
    file = Path(env["GEMINI_CLI_HOME"]) / ".gemini" / "settings.json"
    settings = json.loads(file.read_text())
    settings["tools"]["allowed"] = ["run_shell_command", "write_file", "mcp_lab_touch_file"]
    settings["mcp"] = {"allowed": ["lab"]}
    put(file, json.dumps(settings))
    put(
        file.parent / "policies" / "all.toml",
        '[[rule]]\ntoolName = "*"\ndecision = "allow"\npriority = 900\n',
    )


def codex(env: Mapping[str, str], _: Path) -> None:
    file = Path(env["CODEX_HOME"]) / "config.toml"
    wide = 'default_permissions = ":danger-full-access"\napprovals_reviewer = "auto_review"\n'
    file.write_text(
        wide
        + file.read_text()
        + '\n[mcp_servers.lab]\ncommand = "true"\ntools.touch_file.approval_mode = "approve"\n'
    )
    put(
        Path(env["CODEX_HOME"]) / "rules" / "default.rules",
        'prefix_rule(pattern=["touch"], decision="allow")\n',
    )


CASES: Final[dict[str, tuple[Widen, str]]] = {
    "claude-agent-acp": (claude, ""),
    "codex-acp": (codex, "default.rules"),
    "gemini": (gemini, "all.toml"),
    "goose": (goose, "permission.yaml"),
    "opencode": (opencode, ""),
}
"""By agent: what allows everything, and the file for which a plan is refused."""


@pytest.mark.parametrize("name", CASES)
async def test_what_the_user_allows_does_not_widen_a_plan(
    name: str, hermitage: IsolatedEnvironment, server: ModelServer, place: Path
) -> None:
    agent = installed_agent(name)
    widen, refused = CASES[name]
    env = agent.environment(hermitage)
    async with (
        open_house(server, agent, hermitage.work, env) as house,
        open_probes(house, place, SOME) as probes,
    ):
        widen(env, probes.work)
        session = await house.session(PermissionMode.PLAN, cwd=probes.work)
        if refused:
            failure = (await house.play([[ModelSay(text="Done.")]], session)).result.failure
            assert failure is not None
            assert failure.kind is FailureKind.CONFIG_INVALID
            assert failure.message.startswith("permission_mode: not plan while ")
            assert f"{refused} allows tools" in failure.message
        else:
            found = await probes.probe(session, "plan")
            assert found.done <= READS
