"""The ACP adapter: the agents that it knows, their modes, and how they are started."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from sessionmgr.adapter import (
    NATIVE,
    UNSUPPORTED,
    ProviderAdapter,
    derive_adapter,
    find_adapter,
)
from sessionmgr.manager import open_manager
from sessionmgr.model import CAPABILITIES, FailureKind, Fidelity, PermissionMode
from sessionmgr.store import MemoryStore
from sessionmgr.testing.mock_sdk import MockSdk, with_sdk
from sessionmgr_adapters.acp import AcpAdapter, AcpOptions
from sessionmgr_adapters.acp.bundled_agents import BUNDLED, quirks_of
from sessionmgr_adapters.acp.quirks import UNKNOWN, AgentQuirks
from sessionmgr_adapters.acp.registry import (
    AgentChoice,
    AgentDistribution,
    BinaryTarget,
    RegistryAgent,
)
from sessionmgr_adapters.acp.sdk import AcpSpec
from tests.adapters.acp.mock_agent import Talk, agent_of_frames, chunk, ended, opening, session_of
from tests.adapters.acp.mocked_manager import Played, play

PLAN = PermissionMode.PLAN
ENTRY = {
    "id": "other",
    "version": "1.0.0",
    "name": "Other",
    "distribution": {"npx": {"package": "other-agent", "args": ["--acp"], "env": {"X": "1"}}},
}


def provider(name: str, agents: Path | None = None) -> type[AcpAdapter]:
    return cast("type[AcpAdapter]", find_adapter(name, {"acp": AcpAdapter}, agents))


# --- the known agents -----------------------------------------------------------------------------


@pytest.mark.parametrize("quirks", BUNDLED.values(), ids=BUNDLED)
def test_what_is_known_about_an_agent_is_consistent(quirks: AgentQuirks) -> None:
    assert quirks.command
    assert quirks.install
    assert quirks.login
    assert {*quirks.has, *quirks.lacks} <= set(CAPABILITIES)
    # Each of our modes is one of the agent's, or is not possible at all.
    assert PermissionMode.FULL_AUTO in quirks.modes
    assert all(each.id for each in quirks.modes.values())
    plan = quirks.modes.get(PLAN)
    assert plan is None or plan.fidelity is Fidelity.EMULATED
    assert not any(each.config for each in quirks.modes.values()) or quirks.config_variable


def test_an_agent_is_found_by_its_id_in_the_official_registry() -> None:
    assert quirks_of("claude-acp") is BUNDLED["claude-agent-acp"]
    assert quirks_of("nothing") is UNKNOWN
    assert quirks_of(None) is UNKNOWN


def test_a_provider_for_each_known_agent_declares_what_it_can() -> None:
    assert set(AcpAdapter.variants(None)) == set(BUNDLED)
    goose = provider("acp:goose")
    assert (goose.name, goose.display_name) == ("acp:goose", "goose")
    assert goose.capabilities.cost is NATIVE
    assert goose.capabilities.steer is UNSUPPORTED
    assert goose.offers(AcpOptions()) is goose.capabilities
    assert PermissionMode.DEFAULT in goose.permissions.modes
    assert "GOOSE_*" in goose.environment.names


def test_an_agent_of_a_registry_file_is_unknown_but_can_be_named(tmp_path: Path) -> None:
    file = tmp_path / "agent.json"
    file.write_text(json.dumps(ENTRY))
    other = provider("acp:other@1.0.0", file)
    assert other.display_name == "Other"
    assert PLAN not in other.permissions.modes


def test_the_plain_provider_declares_what_the_named_agent_can() -> None:
    assert AcpAdapter.offers(AcpOptions(agent="gemini")).effort is UNSUPPORTED
    assert AcpAdapter.offers(AcpOptions(command=("x",))).effort is NATIVE
    assert AcpAdapter.offers(AcpOptions(agent="goose")).cost is UNSUPPORTED  # as it declares
    assert PLAN in AcpAdapter.permission_map(AcpOptions(agent="gemini")).modes
    assert PLAN not in AcpAdapter.permission_map(AcpOptions(command=("x",))).modes
    named = AcpAdapter.permission_map(AcpOptions(agent="gemini", mode="yolo")).modes
    assert named.keys() == set(PermissionMode) - {PLAN}
    assert named[PermissionMode.FULL_AUTO].effective == "yolo"
    named = AcpAdapter.permission_map(AcpOptions(agent="gemini", mode="plan")).modes
    assert named[PLAN] == AcpAdapter.permission_map(AcpOptions(agent="gemini")).modes[PLAN]


def test_an_unknown_agent_receives_the_variables_that_bear_its_name() -> None:
    options = AcpOptions(command=("/opt/qwen-code.js", "--acp"))
    names = AcpAdapter.declares({}, options).names
    assert {"OPENAI_*", "QWEN_CODE_*", "QWEN_*"} <= set(names)
    target = BinaryTarget(cmd="./qwen")
    distribution = AgentDistribution(binary={"linux-x86_64": target})
    entry = RegistryAgent(id="other", version="1", distribution=distribution)
    choice = AgentChoice(id="other", entry=entry)
    names = derive_adapter(AcpAdapter, "other", agent=choice).declares({}, AcpOptions()).names
    assert {"OTHER_*", "QWEN_*"} <= set(names)
    assert "QWEN_*" not in AcpAdapter.declares({}, AcpOptions(command=("goose", "acp"))).names
    assert "OPENCODE_*" not in AcpAdapter.declares({}, AcpOptions(agent="gemini")).names


# --- faults ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "name", "message"),
    [
        ({"command": None}, "acp", "options: no agent is named"),
        ({"agent": "nobody"}, "acp", "options.agent: 'nobody' is not possible; known: "),
        ({"agent": "gemini"}, "acp:goose", "options.agent: 'gemini' is not possible; acp:goose"),
        ({"protocol": 2}, "acp", "options.protocol: version 2 does not work here; known: 1"),
        ({"home": "h"}, "acp", "options.home: the directory of this agent cannot be set"),
        ({"mcp_servers": {"a": {}}}, "acp", "options.mcp_servers.a: it needs either a command or"),
        ({"mcp_servers": {"a": []}}, "acp", "options.mcp_servers.a: Expected `object`"),
        (
            {"mcp_servers": {"a": {"url": "u", "type": "pigeon"}}},
            "acp",
            "options.mcp_servers.a.type: unknown type 'pigeon'; known: http, sse",
        ),
    ],
)
async def test_a_fault_of_the_options_is_named_before_anything_starts(
    options: dict[str, Any], name: str, message: str
) -> None:
    played = await play(agent_of_frames, options=options, provider=name, mode="full_auto")
    kind, found = played.failure
    assert kind == FailureKind.CONFIG_INVALID
    assert found.startswith(message)


@pytest.mark.parametrize("mode", ["default", "accept_edits"])
async def test_a_mode_of_a_known_agent_that_may_allow_more_is_refused(mode: str) -> None:
    options = {"mode": "yolo"}
    played = await play(agent_of_frames, options=options, provider="acp:gemini", mode=mode)
    kind, found = played.failure
    assert kind == FailureKind.CONFIG_INVALID
    assert found == (
        f"options.mode: 'yolo' may allow more than permission_mode '{mode}'; leave it out, or use "
        "permission_mode 'full_auto'"
    )


async def test_an_image_that_cannot_be_read_is_refused() -> None:
    kind, message = (await play(agent_of_frames, images=["missing.png"])).failure
    assert kind == FailureKind.CONFIG_INVALID
    assert "missing.png cannot be read" in message


# --- the process ----------------------------------------------------------------------------------


async def started(name: str, mode: str = "full_auto", **wishes: Any) -> tuple[AcpSpec, Played]:
    """Return the specification of the process of a run."""
    specs: list[AcpSpec] = []

    class Recorded(AcpAdapter):
        def spec(self, run: Any) -> AcpSpec:
            specs.append(super().spec(run))
            return specs[-1]

    async def script(it: Talk) -> None:
        call = await opening(it)
        it.says(chunk(session_of(call), "x"), ended())

    async with (
        MockSdk(script) as sdk,
        open_manager(
            store=MemoryStore(),
            adapters={"acp": with_sdk(Recorded, sdk)},
            environ={"HOME": "/nowhere", "PATH": "/bin", "OPENAI_API_KEY": "sk-of-the-user"},
        ) as manager,
    ):
        session = await manager.open_session(name, permission_mode=PermissionMode(mode))
        run = await session.submit("hi", **wishes)
        events = [event async for event in run]
        return specs[0], Played(await run.result(), events)


async def test_the_agents_command_model_and_variables_make_its_process() -> None:
    spec, _ = await started("acp:gemini", model="gemini-9", options={"home": "config"})
    assert spec.command.argv == ("gemini", "--acp", "-m", "gemini-9")
    assert spec.command.env["GEMINI_CLI_HOME"] == str(Path.cwd() / "config")
    assert spec.command.env["GEMINI_CLI_NO_RELAUNCH"] == "1"
    assert "OPENAI_API_KEY" not in spec.command.env
    assert not spec.features.read_file
    assert spec.features.write_file
    assert not spec.features.elicitation_form


@pytest.mark.parametrize(
    ("name", "protocol", "offered"),
    [
        ("acp:codex-acp", "auto", 2),
        ("acp:codex-acp", 2, 2),
        ("acp:codex-acp", 1, 1),
        ("acp:goose", "auto", 1),
    ],
)
async def test_version_2_is_offered_to_agents_that_are_known_to_speak_it(
    name: str, protocol: int | str, offered: int
) -> None:
    spec, _ = await started(name, options={"protocol": protocol})
    assert spec.version == offered
    assert spec.key != replace(spec, version=3).key


async def test_an_agent_gets_the_keys_of_its_provider_only() -> None:
    spec, _ = await started("acp:goose")
    assert spec.command.env["OPENAI_API_KEY"] == "sk-of-the-user"
    spec, _ = await started("acp:gemini")
    assert "OPENAI_API_KEY" not in spec.command.env
    spec, _ = await started("acp", options={"command": ["x"]})
    assert spec.command.env["OPENAI_API_KEY"] == "sk-of-the-user"


@pytest.mark.parametrize(
    ("mode", "given", "edit"),
    [
        ("default", None, "ask"),
        ("plan", {"model": "m", "permission": {"edit": "deny", "bash": "allow"}}, "deny"),
        ("accept_edits", {"permission": "allow"}, "ask"),
        ("accept_edits", {"permission": {"bash": {"rm *": "allow"}}}, "ask"),
    ],
)
async def test_the_configuration_of_the_mode_is_merged_into_the_users(
    mode: str, given: dict[str, Any] | None, edit: str
) -> None:
    env = {} if given is None else {"OPENCODE_CONFIG_CONTENT": json.dumps(given)}
    spec, _ = await started("acp:opencode", mode, env=env)
    found = json.loads(spec.command.env["OPENCODE_CONFIG_CONTENT"])
    rules = found.pop("permission")
    assert (rules["edit"], rules["bash"], rules["webfetch"], rules["*"]) == (edit, *["ask"] * 3)
    for name, agent in found.pop("agent", {}).items():
        assert (mode, name) == ("plan", "plan")
        assert set(agent["permission"].values()) == {"ask"}
    assert found == {each: value for each, value in (given or {}).items() if each != "permission"}


async def test_a_server_that_the_agent_would_leave_out_is_refused() -> None:
    servers = {"web": {"url": "http://127.0.0.1/"}, "own": {"command": "x"}}
    refused = await play(agent_of_frames, provider="acp:copilot", options={"mcp_servers": servers})
    assert refused.failure == (
        FailureKind.CONFIG_INVALID,
        "options.mcp_servers.own: this agent takes only servers with a url, not with a command",
    )


async def test_a_mode_without_configuration_leaves_the_users_as_it_is() -> None:
    spec, _ = await started("acp:opencode", env={"OPENCODE_CONFIG_CONTENT": "not JSON"})
    assert spec.command.env["OPENCODE_CONFIG_CONTENT"] == "not JSON"


async def test_configuration_that_is_no_object_is_refused() -> None:
    played = await play(
        agent_of_frames, provider="acp:opencode", env={"OPENCODE_CONFIG_CONTENT": "[]"}
    )
    assert played.failure == (
        FailureKind.CONFIG_INVALID,
        "env: OPENCODE_CONFIG_CONTENT must hold a JSON object, not '[]'",
    )


# --- readiness ------------------------------------------------------------------------------------


def program(place: Path, name: str) -> None:
    (place / name).write_text("#!/bin/sh\n")
    (place / name).chmod(0o755)


def ready(adapter: type[ProviderAdapter], place: Path, **options: Any) -> tuple[str, str]:
    found = adapter.readiness(AcpOptions(**options), {"PATH": str(place)}, str(place))
    return found.state, found.detail


def test_an_agent_is_ready_if_its_program_is_installed(tmp_path: Path) -> None:
    state, detail = ready(provider("acp:goose"), tmp_path)
    assert state == "skip"
    assert "npm install -g @aaif/goose-acp" in detail
    program(tmp_path, "goose")
    assert ready(provider("acp:goose"), tmp_path) == (
        "ok",
        "goose is installed; its login is unknown",
    )
    assert ready(AcpAdapter, tmp_path, agent="goose")[0] == "ok"
    assert ready(AcpAdapter, tmp_path)[0] == "skip"


def test_an_agent_of_a_registry_file_is_started_as_its_entry_says(tmp_path: Path) -> None:
    file = tmp_path / "agent.json"
    file.write_text(json.dumps(ENTRY))
    other = provider("acp:other", file)
    state, detail = ready(other, tmp_path)
    assert state == "skip"
    assert "other-agent" in detail
    program(tmp_path, "other-agent")
    assert ready(other, tmp_path)[0] == "ok"


def test_an_agent_of_both_is_started_as_is_usual_if_it_is_installed(tmp_path: Path) -> None:
    file = tmp_path / "agent.json"
    file.write_text(json.dumps({**ENTRY, "id": "goose"}))
    program(tmp_path, "goose")
    assert ready(provider("acp:goose", file), tmp_path)[1].startswith("goose is installed")


async def test_the_health_of_the_plain_provider_is_that_of_no_agent() -> None:
    assert (await AcpAdapter().health()).state == "skip"


async def test_another_version_than_the_named_one_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "agent.json"
    file.write_text(json.dumps({**ENTRY, "version": "9.9.9"}))
    async with (
        MockSdk(agent_of_frames) as sdk,
        open_manager(
            store=MemoryStore(),
            adapters={"acp": with_sdk(AcpAdapter, sdk)},
            environ={"HOME": "/nowhere", "PATH": os.defpath},
            agents=file,
        ) as manager,
    ):
        session = await manager.open_session("acp:other@9.9.9")
        async with session.start("hi", options={"command": ["x"]}) as run:
            failure = (await run.result()).failure
    assert failure is not None
    assert failure.message == (
        "provider: version 9.9.9 was asked for, but 1.2.3 of mock is installed; install it, or "
        "name no version"
    )
