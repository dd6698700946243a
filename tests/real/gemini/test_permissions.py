"""Effects of Gemini CLI on disk and network in each permission mode."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import pytest
import trio

from sessionmgr.model import RunStatus
from sessionmgr.testing.model_server import ModelCall, ModelSay, ModelScript, prompt_with
from sessionmgr_adapters.gemini.headless import GeminiHeadlessAdapter
from sessionmgr_adapters.gemini.permissions import HEADLESS_PERMISSIONS
from tests.real.claude.test_options import SERVER
from tests.real.effect_probes import COMMAND, INSIDE, NETWORK, READ, open_canaries
from tests.real.harness import RealAgentHarness

# Gemini itself protects .git; it creates .vscode only in its mode `yolo`.
GUARDED: Final = (".gemini/settings.json", ".git/hooks/pre-commit", ".vscode/tasks.json", ".bashrc")
# Its tool writes no file outside in any mode, but its shell does.
EVERYTHING: Final = {READ, INSIDE, COMMAND, NETWORK, GUARDED[0], *GUARDED[2:]}
UNASKED: Final[dict[str, set[str]]] = {
    "default": {READ},
    "accept_edits": {READ, INSIDE},
    "plan": {READ},
    "full_auto": EVERYTHING,
    "dangerously_skip_permissions": EVERYTHING,
}


async def test_only_what_the_mode_allows_is_done(house: RealAgentHarness) -> None:
    """In a new session, and in the same one resumed."""
    async with (
        open_canaries(house, HEADLESS_PERMISSIONS, GUARDED) as canaries,
        trio.open_nursery() as nursery,
    ):
        for mode, effects in UNASKED.items():
            denied = 3 if mode == "accept_edits" else 0  # other tools are not offered at all
            nursery.start_soon(partial(canaries.check, mode, effects, denied=denied))


RULES: Final = """
[[rule]]
toolName = "*"
decision = "allow"
priority = 999
[[rule]]
toolName = ["exit_plan_mode", "enter_plan_mode", "write_file", "run_shell_command"]
decision = "allow"
priority = 998
"""


PLANNING: Final = 3
"""The number of attempts to change the mode."""


def attempts(place: Path) -> ModelScript:
    """Return a script that calls tools by their names, whether they are offered or not."""
    plan = {"file_path": "plan.md", "content": "# A plan\n\nI do it.\n"}
    made = {"file_path": f"{place}-by-tool", "content": "x"}
    replaced = {"file_path": f"{place}-by-edit", "old_string": "", "new_string": "x"}
    calls = (
        ModelCall(tool="enter_plan_mode", input={"reason": "I plan."}),
        ModelCall(tool="write_file", input=plan),
        ModelCall(tool="exit_plan_mode", input={"plan_filename": "plan.md"}),
        ModelCall(tool="run_shell_command", input={"command": f"touch {place}-by-command"}),
        ModelCall(tool="write_file", input=made),
        ModelCall(tool="replace", input={"instruction": "i", **replaced}),
    )
    return [*([each] for each in calls), [ModelSay(text="done")]]


async def test_a_model_that_leaves_plan_mode_by_itself_gains_nothing(
    house: RealAgentHarness,
) -> None:
    """Without a terminal Gemini would let it, and switch to its mode `yolo`."""
    for mode, done in {
        "plan": set[str](),
        "default": set[str](),
        "accept_edits": {"-by-tool", "-by-edit"},
    }.items():
        cwd = house.place(mode)
        session = await house.session(mode, cwd=cwd)
        for turn in ("fresh", "resumed"):
            played = await house.play(attempts(cwd / turn), session)
            assert played.result.text == "done", played.result.failure
            names = {each.name for each in cwd.iterdir()} - {"plan.md"}
            assert names >= {f"{turn}{each}" for each in done}, mode
            assert not [each for each in names if each.partition("-by-")[2] and not done], mode
            assert not [each for each in names if each.endswith("-by-command")], mode


async def test_rules_of_the_user_widen_no_plan(house: RealAgentHarness) -> None:
    home = Path(house.env["HOME"], ".gemini")
    policies = trio.Path(home, "policies")
    await policies.mkdir()
    await (policies / "mine.toml").write_text(RULES)
    settings = trio.Path(home, "settings.json")
    known = msgspec.json.decode(await settings.read_bytes())
    known["tools"]["allowed"] = ["run_shell_command", "write_file", "replace"]
    known["general"]["plan"] = {"directory": "."}
    await settings.write_bytes(msgspec.json.encode(known))
    session = await house.session("plan")
    for turn in ("fresh", "resumed"):
        played = await house.play(attempts(house.work / turn), session)
        assert played.result.text == "done", played.result.failure
        assert list(house.work.iterdir()) == []
    # In the mode default they apply: they are the user's own.
    session = await house.session("default")
    await house.play(attempts(house.work / "default"), session)
    assert (house.work / "default-by-command").exists()


WRITES: Final = """if "path" in str(asked):
        open(asked["params"]["arguments"]["path"], "w").close()
    if "id" not in asked:"""


async def test_agents_and_servers_widen_no_mode(house: RealAgentHarness) -> None:
    """Agents that the model calls are kept to the mode, and a trusted server does not plan."""
    program = house.work.parent / "server.py"
    program.write_text(SERVER.replace('if "id" not in asked:', WRITES))
    settings = trio.Path(house.env["HOME"], ".gemini", "settings.json")
    known = msgspec.json.decode(await settings.read_bytes())
    theirs = {"command": sys.executable, "args": [str(program)], "trust": True}
    known["mcpServers"] = {"theirs": theirs}
    await settings.write_bytes(msgspec.json.encode(known))
    agents = ("generalist", "codebase_investigator")

    def script(place: Path, first: int = 0) -> ModelScript:
        by_server = ModelCall(tool="mcp_theirs_add", input={"path": f"{place}-by-server"})
        given = prompt_with([*attempts(place)[first:-1], [ModelCall(tool="complete_task")]])
        calls = [
            ModelCall(tool="invoke_agent", input={"agent_name": each, "prompt": given})
            for each in agents
        ]
        return [*([each] for each in (*calls, by_server)), [ModelSay(text="done")]]

    for mode, done in {"plan": set[str](), "default": {"default-by-server"}}.items():
        session = await house.session(mode)
        played = await house.play(script(house.work / mode), session)
        assert played.result.text == "done", played.result.failure
        assert {each.name for each in house.work.iterdir()} == done
    free = script(house.work / "free", PLANNING)  # otherwise it would change to plan mode
    await house.play(free, await house.session("full_auto"))
    assert {f"free-by-{each}" for each in ("command", "tool", "edit", "server")} <= {
        each.name for each in house.work.iterdir()
    }


async def test_tools_that_are_denied_are_not_there(house: RealAgentHarness) -> None:
    session = await house.session("full_auto")
    denied = ["run_shell_command", "write_file", "mcp_*"]
    played = await house.play(attempts(house.work / "x"), session, tools_denied=denied)
    assert played.result.status is RunStatus.COMPLETED, played.result.failure
    assert {each.name for each in house.work.iterdir()} == {"x-by-edit"}


async def test_a_run_whose_policy_would_be_ignored_is_refused(
    house: RealAgentHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    policies = house.place("policies")
    (policies / "machine.toml").touch()
    monkeypatch.setattr(GeminiHeadlessAdapter, "admin_policies", policies)
    played = await house.play([[ModelSay(text="never")]], await house.session("plan"))
    assert played.result.failure is not None
    assert played.result.failure.kind == "permission_refused"
    assert str(policies) in played.result.failure.message
    assert not house.server.log.asked
    await house.goes_on(await house.session("full_auto"))
