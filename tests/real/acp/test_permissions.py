"""Effects of each agent over ACP on disk, network and servers, in each permission mode."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from sessionmgr.adapter import PermissionRefused
from sessionmgr.model import PermissionMode
from sessionmgr.testing.model_server import (
    IsolatedEnvironment,
    ModelCall,
    ModelSay,
    ModelScript,
    ModelServer,
)
from sessionmgr_adapters.acp.bundled_agents import BUNDLED
from sessionmgr_adapters.acp.quirks import OWN_DEFAULT
from tests.acp_permissions import (
    EDITS,
    EFFECTS,
    READS,
    Outcome,
    ProbedAgent,
    ProbedMode,
    read_file,
    write_agent,
)
from tests.real.acp.agents import InstalledAcpAgent, installed_agent
from tests.real.acp.harness import open_house
from tests.real.acp.permission_probes import Probed, open_probes
from tests.real.harness import allow

ASKING: Final = (PermissionMode.DEFAULT, PermissionMode.ACCEPT_EDITS, PermissionMode.PLAN)
"""The modes in which a caller may be asked."""
RESUMED: Final = (PermissionMode.DEFAULT, PermissionMode.PLAN, PermissionMode.FULL_AUTO)
"""The modes that are tried in resumed sessions as well; with --record it is each mode."""
SKIP: Final = PermissionMode.DANGEROUSLY_SKIP_PERMISSIONS
SAME_MINUTE: Final = ("gemini",)
"""Agents with which another process continues a session of the same minute only after a wait."""
SOME: Final = ("write inside", "command inside", "connect by a command")
OF_GOOSE: Final = ("GOOSE_", "OPENAI_")


@pytest.fixture
def place() -> Iterator[Path]:
    """Return directories outside of the temporary ones, which some agents' sandboxes leave open."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="sessionmgr-") as name:
        yield Path(name)


def effects_of(agent: str) -> list[str]:
    """Return the effects to try; an agent may not start MCP servers."""
    return [each for each in EFFECTS if each != "MCP tool" or BUNDLED[agent].starts_servers]


def environment_of(agent: InstalledAcpAgent, hermitage: IsolatedEnvironment) -> dict[str, str]:
    """Return the environment of an agent whose user has configured no permissions."""
    if agent.id == "opencode":
        return hermitage.opencode(permission=None)
    return agent.environment(hermitage)


async def test_an_agent_does_in_each_mode_what_is_recorded(
    acp_agent: InstalledAcpAgent,
    hermitage: IsolatedEnvironment,
    server: ModelServer,
    place: Path,
    request: pytest.FixtureRequest,
) -> None:
    env, store = environment_of(acp_agent, hermitage), hermitage.root / "runs.db"
    own, effects = BUNDLED[acp_agent.id].modes, effects_of(acp_agent.id)
    # Both modes without questions are one to most agents.
    same = own[PermissionMode.FULL_AUTO] == own[SKIP]
    cases = [
        (mode, attended)
        for mode in PermissionMode
        for attended in (False, True)
        if mode in own and (mode in ASKING or not attended) and (mode is not SKIP or not same)
    ]
    fresh: dict[tuple[PermissionMode, bool], Probed] = {}
    is_recording = request.config.getoption("--record", default=False)
    async with (
        open_house(server, acp_agent, hermitage.work, env, store=store) as house,
        open_probes(house, place, effects) as probes,
    ):
        sessions: dict[PermissionMode, str] = {}
        for mode, attended in cases:
            approve = allow if attended else None
            session = await house.session(mode, cwd=probes.work, approve=approve)
            fresh[mode, attended] = found = await probes.probe(session, f"{mode}-{attended}-new")
            check_mode(mode, found)
            if acp_agent.id in SAME_MINUTE and not attended:
                assert_same(await probes.probe(session, f"{mode}-again"), found)
            if not attended:
                sessions[mode] = session.id
    if acp_agent.id not in SAME_MINUTE:
        async with (
            open_house(server, acp_agent, hermitage.work, env, store=store) as house,
            open_probes(house, place, effects) as probes,
        ):
            for mode, session_id in sessions.items():
                if mode not in RESUMED and not is_recording:
                    continue
                session = await house.manager.session(session_id)
                resumed = await probes.probe(session, f"{mode}-resumed")
                assert_same(resumed, fresh[mode, False])
    modes = {
        mode: probed_mode(fresh[mode, False], fresh.get((mode, True)), effects)
        for mode, attended in cases
        if not attended
    }
    if same:
        modes[SKIP] = modes[PermissionMode.FULL_AUTO]
    agent = ProbedAgent(version=acp_agent.version, modes=modes)
    if is_recording:
        write_agent(acp_agent.id, agent)
    assert agent == read_file()[acp_agent.id]


async def test_the_mode_of_one_run_is_not_that_of_the_next(
    acp_agent: InstalledAcpAgent, hermitage: IsolatedEnvironment, server: ModelServer, place: Path
) -> None:
    env, store = environment_of(acp_agent, hermitage), hermitage.root / "runs.db"
    recorded, session_id = read_file()[acp_agent.id], ""
    changes = [
        [PermissionMode.FULL_AUTO, PermissionMode.PLAN, PermissionMode.FULL_AUTO],
        [PermissionMode.DEFAULT],
        [PermissionMode.PLAN],
    ]
    if acp_agent.id in SAME_MINUTE:
        changes = [[mode for each in changes for mode in each]]
    for turn, modes in enumerate(changes):  # each in a process of its own
        async with (
            open_house(server, acp_agent, hermitage.work, env, store=store) as house,
            open_probes(house, place, SOME) as probes,
        ):
            if session_id:
                session = await house.manager.session(session_id)
            else:
                session = await house.session(cwd=probes.work)
                session_id = session.id
            for number, mode in enumerate(modes):
                if mode in recorded.modes:
                    found = await probes.probe(session, f"run{turn}-{number}", mode)
                    outcomes = recorded.modes[mode].effects
                    done = {each for each in SOME if outcomes[each] in ("done", "granted")}
                    assert found.done == done, (turn, number, mode)


@pytest.mark.parametrize("name", ["claude-agent-acp", "codex-acp"])
async def test_an_agent_does_the_same_in_version_2_of_the_protocol(
    name: str, hermitage: IsolatedEnvironment, server: ModelServer, place: Path
) -> None:
    agent = installed_agent(name)
    env = agent.environment(hermitage)
    async with (
        open_house(server, agent, hermitage.work, env, protocol=2) as house,
        open_probes(house, place, protocol=2) as probes,
    ):
        for mode in (*ASKING, PermissionMode.FULL_AUTO):
            session = await house.session(mode, cwd=probes.work)
            found = await probes.probe(session, mode)
            check_mode(mode, found)
            outcomes = read_file()[name].modes[mode].effects
            done = {each for each, outcome in outcomes.items() if outcome in ("done", "granted")}
            assert found.done == done, mode


async def test_an_agent_that_is_not_known_runs_in_no_mode_that_is_not_verified(
    hermitage: IsolatedEnvironment, server: ModelServer
) -> None:
    agent = installed_agent("goose")  # of its own accord it asks nothing
    env = agent.environment(hermitage)
    async with open_house(server, agent, hermitage.work, env, provider="acp") as house:
        environment = {each: value for each, value in env.items() if each.startswith(OF_GOOSE)}
        script: ModelScript = [
            [ModelCall(tool="shell", input={"command": "touch here"})],
            [ModelSay(text="Done.")],
        ]
        for mode in PermissionMode:
            session = await house.session(mode)
            (hermitage.work / "here").unlink(missing_ok=True)
            if mode is PermissionMode.PLAN:
                with pytest.raises(PermissionRefused, match="does not support"):
                    await house.play(script, session, env=environment)
                continue
            result = (await house.play(script, session, env=environment)).result
            assert result.status == "completed", result.failure
            assert result.permission is not None
            assert result.permission.effective == f"{OWN_DEFAULT} (auto)"
            assert result.permission.confined is None
            # Its commands go through its client, which asks what it did not ask.
            is_free = mode not in ASKING
            assert (hermitage.work / "here").exists() is is_free, mode
            assert len(result.permission_denials) == int(not is_free)


def check_mode(mode: PermissionMode, probed: Probed) -> None:
    """Check the meaning of a mode, whatever is recorded."""
    by_mode = {each for each, by in probed.granted.items() if by == "mode"}
    match mode:
        case PermissionMode.DEFAULT:
            assert by_mode == set()
        case PermissionMode.ACCEPT_EDITS:
            assert by_mode <= EDITS
        case PermissionMode.PLAN:
            assert probed.done <= READS
            assert probed.granted.keys() <= READS
        case _:
            assert probed.denied == {}
    if mode in ASKING and not probed.permission.confined:
        unasked = probed.done - probed.granted.keys()
        assert unasked <= READS


def assert_same(later: Probed, first: Probed) -> None:
    assert (later.done, later.granted, later.denied) == (first.done, first.granted, first.denied)
    assert later.permission == first.permission


def probed_mode(alone: Probed, attended: Probed | None, effects: list[str]) -> ProbedMode:
    """Return the outcomes without a caller to ask, and with one that allows everything."""
    return ProbedMode(
        mode=alone.permission.effective,
        fidelity=alone.permission.fidelity,
        confined=alone.permission.confined,
        effects={each: outcome_of(each, alone, attended) for each in effects},
    )


def outcome_of(effect: str, alone: Probed, attended: Probed | None) -> Outcome:
    if effect in alone.done:
        return "granted" if effect in alone.granted else "done"
    if alone.denied.get(effect) == "mode":
        return "denied"
    if effect in alone.denied and attended is not None and effect in attended.done:
        return "asked"
    return "refused"
