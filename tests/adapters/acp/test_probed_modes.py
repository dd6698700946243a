"""What is recorded of agents in permission modes: it is complete, current, and keeps each mode."""

import pytest

from sessionmgr.model import PermissionMode
from sessionmgr_adapters.acp.bundled_agents import BUNDLED
from tests.acp_permissions import EDITS, READS, ProbedMode, read_file
from tests.real.agent_programs import ACP

AGENTS = read_file()
INSIDE = {*EDITS, "write .vscode", "command inside"}
MODES = [(name, mode) for name, agent in AGENTS.items() for mode in agent.modes]


def test_each_agent_is_recorded_in_its_version_and_all_its_modes() -> None:
    assert {name: each.version for name, each in AGENTS.items()} == ACP
    assert {name: {*each.modes} for name, each in AGENTS.items()} == {
        name: {*each.modes} for name, each in BUNDLED.items()
    }


@pytest.mark.parametrize(("agent", "mode"), MODES)
def test_what_is_recorded_is_what_the_adapter_claims(agent: str, mode: PermissionMode) -> None:
    claimed, found = BUNDLED[agent].modes[mode].mapped, AGENTS[agent].modes[mode]
    assert (found.mode, found.fidelity, found.confined) == (
        claimed.effective,
        claimed.fidelity,
        claimed.confined,
    )


def effects(probed: ProbedMode, *outcomes: str) -> set[str]:
    """Return the effects with one of these outcomes."""
    return {each for each, outcome in probed.effects.items() if outcome in outcomes}


@pytest.mark.parametrize(("agent", "mode"), MODES)
def test_no_agent_does_more_than_the_mode_allows(agent: str, mode: PermissionMode) -> None:
    probed = AGENTS[agent].modes[mode]
    unasked = effects(probed, "done")
    match mode:
        case PermissionMode.PLAN:
            assert effects(probed, "done", "granted") <= READS
            assert not effects(probed, "asked")
        case PermissionMode.DEFAULT | PermissionMode.ACCEPT_EDITS:
            granted = effects(probed, "granted")
            assert granted <= (EDITS if mode is PermissionMode.ACCEPT_EDITS else set())
            assert unasked <= (READS | INSIDE if probed.confined else READS)
        case _:
            assert not effects(probed, "asked", "denied")
