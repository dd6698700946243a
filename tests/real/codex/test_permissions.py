"""Codex's permissions in each mode, by effects on disk and network."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

import trio

from sessionmgr.adapter import Approve, MappedMode, PermissionMap
from sessionmgr.model import FailureKind, Fidelity, Json, PermissionMode
from sessionmgr.testing.model_server import ModelCall, ModelSay, ModelScript, ModelServer
from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment
from sessionmgr_adapters.codex.permissions import PERMISSIONS
from tests.real.codex.harness import open_house
from tests.real.effect_probes import (
    ALL,
    COMMAND,
    INSIDE,
    LINK,
    OUTSIDE,
    READ,
    EffectProbes,
    ProbeDirectories,
    open_canaries,
)
from tests.real.harness import RealAgentHarness, allow

WORK: Final = {READ, INSIDE, COMMAND}
# The effects in each mode: without an approver, and with one that allows everything. Codex asks
# for no connection, and does not write through a link even if that was allowed.
UNASKED: Final[dict[str, set[str]]] = {
    "default": WORK,
    "accept_edits": WORK,
    "plan": {READ},
    "full_auto": WORK,
    "dangerously_skip_permissions": ALL,
}
ALLOWED: Final[dict[str, set[str]]] = {
    "default": WORK | {OUTSIDE},
    "accept_edits": WORK | {OUTSIDE},
    "plan": {READ},
}
ASKS: Final = ("default", "accept_edits")
# `codex exec` asks nothing: what would need an approval is not done.
NARROWER: Final = MappedMode("never, workspace-write", Fidelity.NARROWER, confined=True)
ONCE: Final = PermissionMap(
    {
        **PERMISSIONS.modes,
        PermissionMode.DEFAULT: NARROWER,
        PermissionMode.ACCEPT_EDITS: NARROWER,
    }
)
CHANGES: Final = ("plan", "dangerously_skip_permissions", "plan", "full_auto", "default")
# A user's configuration that allows everything; it must not widen any mode.
WIDE: Final = """
[sandbox_workspace_write]
network_access = true
writable_roots = ["/"]
"""
WIDER: Final = """
default_permissions = ":danger-full-access"
approvals_reviewer = "auto_review"
"""


async def check_all(
    canaries: EffectProbes,
    wanted: Mapping[str, set[str]],
    approve: Approve | None = None,
    **options: Json,
) -> None:
    """Try everything in these modes, concurrently."""
    async with trio.open_nursery() as nursery:
        for mode, effects in wanted.items():
            asked = mode in ASKS and approve is None and not options.get("exec")
            denied = len({OUTSIDE, LINK}) if asked else 0
            said = {"temporary": False, **options}
            claims = ONCE if options.get("exec") else None
            check = partial(canaries.check, denied=denied, options=said, permissions=claims)
            nursery.start_soon(check, mode, effects, approve)


async def test_only_that_is_done_which_the_mode_lets_through(house: RealAgentHarness) -> None:
    async with open_canaries(house, PERMISSIONS) as canaries, trio.open_nursery() as nursery:
        nursery.start_soon(check_all, canaries, UNASKED)
        nursery.start_soon(check_all, canaries, ALLOWED, allow)
        nursery.start_soon(partial(check_all, canaries, UNASKED, exec=True))


async def test_an_older_one_does_no_more_either(old_house: RealAgentHarness) -> None:
    some = {mode: UNASKED[mode] for mode in ("plan", "full_auto")}
    async with open_canaries(old_house, PERMISSIONS) as canaries, trio.open_nursery() as nursery:
        nursery.start_soon(check_all, canaries, some)
        nursery.start_soon(check_all, canaries, {"default": ALLOWED["default"]}, allow)
        nursery.start_soon(partial(check_all, canaries, some, exec=True))


async def test_what_the_users_configuration_allows_makes_no_mode_wider(
    server: ModelServer, hermitage: IsolatedEnvironment, newest: Path
) -> None:
    env = hermitage.codex(more=WIDE)
    config = hermitage.root / "codex" / "config.toml"
    config.write_text(WIDER + config.read_text())
    some = {mode: UNASKED[mode] for mode in ("plan", "full_auto")}
    async with (
        open_house(server, newest, hermitage.work, env) as house,
        open_canaries(house, PERMISSIONS) as canaries,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(check_all, canaries, {**some, "default": UNASKED["default"]})
        nursery.start_soon(partial(check_all, canaries, some, exec=True))


async def test_the_mode_of_one_run_is_not_that_of_the_next(house: RealAgentHarness) -> None:
    async def change(*, once: bool) -> None:
        cage = ProbeDirectories(house.place())
        session = await house.session(cwd=cage.work)
        for number, mode in enumerate(CHANGES):
            options: dict[str, Json] = {"exec": once, "temporary": False}
            done, _ = await canaries.try_all(cage, session, f"turn{number}", mode, **options)
            assert done == UNASKED[mode], f"{mode}, turn {number}"

    async with open_canaries(house, PERMISSIONS) as canaries, trio.open_nursery() as nursery:
        for once in (False, True):
            nursery.start_soon(partial(change, once=once))


async def test_a_command_may_leave_its_sandbox_if_that_is_allowed(house: RealAgentHarness) -> None:
    place = house.place()
    wish: dict[str, Json] = {
        "cmd": f"touch {place}/out",
        "sandbox_permissions": "require_escalated",
        "justification": "May I?",
    }
    script: ModelScript = [[ModelCall(tool="exec_command", input=wish)], [ModelSay(text="done")]]
    played = await house.play(script, await house.session())
    assert not (place / "out").exists()
    assert len(played.result.permission_denials) == 1
    for mode in ("full_auto", "plan"):
        await house.play(script, await house.session(mode, approve=allow))
        assert not (place / "out").exists()
    await house.play(script, await house.session(approve=allow))
    assert (place / "out").exists()


ANOTHER: Final = """
[model_providers.another]
name = "x"
base_url = "http://x"
env_key = "THE_WORD"
env_http_headers = { "x-gate" = "A_HEADER" }
"""


async def test_commands_do_not_see_the_key(house: RealAgentHarness) -> None:
    script: ModelScript = [
        [ModelCall(tool="shell", input={"command": "env"})],
        [ModelSay(text="done")],
    ]
    config = Path(house.env["CODEX_HOME"]) / "config.toml"
    config.write_text(config.read_text() + ANOTHER)
    override: Json = {
        "model_providers.third": {"name": "y", "env_key": "A_THIRD"},
        "model_providers": {"fourth": {"name": "z", "env_http_headers": {"x-gate": "A_FOURTH"}}},
        # If a setting is both in a table and dotted, Codex may use either.
        "shell_environment_policy": {"set": {"OWN": "1"}},
    }
    hidden = {"CODEX_MODEL_KEY", "THE_WORD", "A_HEADER", "A_THIRD", "A_FOURTH"}
    words = {*hidden, "SEEN", "OWN"}
    env = dict.fromkeys(words - {"CODEX_MODEL_KEY", "OWN"}, "1")
    for once in (False, True):
        for secrets in (False, False, False, False, True) if not once else (False, True):
            options = house.options(exec=once, secrets=secrets, config=override)
            await house.play(script, await house.session("full_auto"), options=options, env=env)
            [told] = house.server.log.asked[-1].results
            seen = {each for each in words if f"{each}=" in told.text}
            assert seen == (words if secrets else words - hidden), f"exec={once}"


LOOSE: Final = (
    'prefix_rule(pattern=["touch"], decision="allow")\n',
    'prefix_rule(pattern=["touch"], decision="allow", justification=\'decision="prompt"\')\n',
    'p = prefix_rule\np(pattern=["touch"], decision="allow")\n',
)


async def test_rules_of_the_users_let_nothing_out_where_nobody_is_asked(
    house: RealAgentHarness,
) -> None:
    rules = Path(house.env["CODEX_HOME"]) / "rules"
    rules.mkdir()
    for number, text in enumerate(LOOSE):
        (rules / "default.rules").write_text(text)
        for mode in ("plan",) if number else ("plan", "full_auto"):
            await nothing_gets_out(house, mode)


async def nothing_gets_out(house: RealAgentHarness, mode: str) -> None:
    """Check the effect of rules that allow `touch`."""
    for once in (False, True):
        for ruled in (False, True):
            out = house.place() / "out"
            script: ModelScript = [
                [ModelCall(tool="shell", input={"command": f"touch {out}"})],
                [ModelSay(text="done")],
            ]
            options = house.options(exec=once, rules=ruled)
            session = await house.session(mode)
            result = (await house.play(script, session, options=options)).result
            kind = result.failure and result.failure.kind
            refused = FailureKind.PERMISSION_REFUSED if not (once or ruled) else None
            assert kind == refused, (mode, once, ruled)
            assert out.exists() is ruled, (mode, once, ruled)
            if once and not ruled:
                await house.goes_on(session, options=options)


# A server with one tool, which writes a file.
WRITER: Final = """
import json, pathlib, sys
for line in sys.stdin:
    message = json.loads(line)
    said = {}
    match message["method"]:
        case "initialize":
            version = message["params"]["protocolVersion"]
            info = {"name": "writer", "version": "1"}
            said = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            said = {"tools": [{"name": "write", "inputSchema": {"type": "object"}}]}
        case "tools/call":
            pathlib.Path(message["params"]["arguments"]["path"]).write_text("")
            said = {"content": []}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": said}), flush=True)
"""


async def test_a_tool_that_is_allowed_for_good_is_not_used_where_a_run_only_plans(
    server: ModelServer, hermitage: IsolatedEnvironment, newest: Path
) -> None:
    file = hermitage.root / "writer.py"
    more = f"""
[mcp_servers.lab]
command = "{sys.executable}"
args = ["{file}"]
tools.write.approval_mode = "approve"
"""
    env = hermitage.codex(more=more)
    file.write_text(WRITER)
    async with open_house(server, newest, hermitage.work, env) as house:
        for mode, uses in (("plan", False), ("full_auto", True)):
            for once in (False, True):
                out = house.place() / "out"
                call = ModelCall(tool="mcp__lab__write", input={"path": str(out)})
                options = house.options(exec=once)
                session = await house.session(mode)
                await house.play([[call], [ModelSay(text="done")]], session, options=options)
                assert out.exists() is uses, (mode, once)


PROJECTS: Final = """
[mcp_servers.lab]
command = "{python}"
args = ["{writer}"]
tools.write.approval_mode = "approve"

[shell_environment_policy]
exclude = ["PRIVATE"]
"""


async def test_what_a_trusted_project_configures_makes_no_mode_wider(
    house: RealAgentHarness,
) -> None:
    writer = house.work.parent / "writer.py"
    writer.write_text(WRITER)
    project = house.place("project")
    await trio.run_process(["git", "init", "-q", str(project)])
    (project / ".codex").mkdir()
    (project / "inner").mkdir()
    configured = PROJECTS.format(python=sys.executable, writer=writer)
    (project / ".codex" / "config.toml").write_text(configured)
    trusted: dict[str, Json] = {"projects": {str(project): {"trust_level": "trusted"}}}
    config = Path(house.env["CODEX_HOME"]) / "config.toml"
    before = config.read_text()
    for by_config in (True, False):  # the user trusts it, or the run does
        more = f'\n[projects."{project}"]\ntrust_level = "trusted"\n' if by_config else ""
        config.write_text(before + more)
        for once in (False, True):
            options = house.options(exec=once, config={} if by_config else trusted)
            for mode, uses in (("plan", False), ("full_auto", True)):
                out = house.place() / "out"
                script: ModelScript = [
                    [ModelCall(tool="mcp__lab__write", input={"path": str(out)})],
                    [ModelCall(tool="shell", input={"command": "env"})],
                    [ModelSay(text="done")],
                ]
                session = await house.session(mode, cwd=project / "inner")
                env = {"PRIVATE": "1", "PUBLIC": "1"}
                played = await house.play(script, session, options=options, env=env)
                assert played.result.status == "completed", played.result.failure
                assert out.exists() is uses, (mode, once, by_config)
                [told] = house.server.log.asked[-1].results[-1:]
                assert "PUBLIC=" in told.text
                assert "PRIVATE=" not in told.text, (mode, once, by_config)
