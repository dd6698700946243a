"""What agents over ACP can beyond a plain turn: servers, images, logins, settings, questions."""

from __future__ import annotations

import base64
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest
import trio

from sessionmgr.adapter import Allow, ApprovalRequest, Approve, Decision
from sessionmgr.manager import SessionHandle, open_manager
from sessionmgr.model import AnyEvent, FailureKind, Json, PermissionMode, RunResult, RunStatus
from sessionmgr.store import MemoryStore
from sessionmgr.testing.model_server import (
    IsolatedEnvironment,
    ModelCall,
    ModelSay,
    ModelScript,
    ModelServer,
    prompt_with,
)
from sessionmgr.testing.model_server.images import RequestImage
from sessionmgr_adapters.acp.bundled_agents import BUNDLED
from tests.real.acp import mcp_server
from tests.real.acp.agents import InstalledAcpAgent, installed_agent

PATIENCE = 120
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJg"
    "gg=="
)
HELLO: ModelScript = [[ModelSay(text="Hello.")]]


def spoken(*names: str) -> list[Any]:
    """Return the agents, each in all its versions, as parameters of a test."""
    return [
        pytest.param(name, version, id=f"{name}-v{version}")
        for name in names
        for version in sorted(BUNDLED[name].protocols)
    ]


class Room:
    """A session of an agent."""

    def __init__(self, session: SessionHandle, options: dict[str, Json]) -> None:
        self.session = session
        self.options = options

    async def play(
        self,
        script: ModelScript,
        text: str = "Answer.",
        *,
        options: Mapping[str, Json] | None = None,
        **wishes: Any,
    ) -> tuple[RunResult, list[AnyEvent]]:
        """Run a prompt."""
        given = {**self.options, **(options or {})}
        async with self.session.start(prompt_with(script, text), options=given, **wishes) as run:
            events = [event async for event in run]
            return await run.result(), events


@asynccontextmanager
async def room_of(
    agent: InstalledAcpAgent,
    isolated: IsolatedEnvironment,
    mode: str = "full_auto",
    *,
    version: int = 1,
    approve: Approve | None = None,
    environment: dict[str, str] | None = None,
) -> AsyncGenerator[Room]:
    environ = environment or agent.environment(isolated)
    with trio.fail_after(PATIENCE):
        async with open_manager(store=MemoryStore(), environ=environ) as manager:
            session = await manager.open_session(
                f"acp:{agent.id}",
                cwd=isolated.work,
                permission_mode=PermissionMode(mode),
                approve=approve,
            )
            yield Room(session, {"command": [*agent.command], "protocol": version})


def of_type(events: list[AnyEvent], name: str) -> list[Any]:
    return [each for each in events if each.type == name]


def heard_by(server: ModelServer) -> str:
    """Return the results of tools that the model was given."""
    return "\n".join(result.text for each in server.log.asked for result in each.results)


# --- servers and images ---------------------------------------------------------------------------

# Copilot leaves out servers with a command.
SERVED = (
    *("claude-agent-acp", "codex-acp", "gemini", "goose", "kimi-cli", "kimi-code"),
    "opencode",
)


@pytest.mark.parametrize(("name", "version"), spoken(*SERVED))
async def test_a_tool_of_a_server_is_used(
    name: str, version: int, server: ModelServer, hermitage: IsolatedEnvironment
) -> None:
    program: Json = {"command": sys.executable, "args": [mcp_server.__file__]}
    async with room_of(installed_agent(name), hermitage, version=version) as room:
        room.options["mcp_servers"] = {"lab": program}
        await room.play(HELLO)
        offered = [tool.name for each in server.log.asked for tool in each.tools]
        # Claude Code and Codex offer it only after a search for it.
        found = [each for each in offered if each.endswith(mcp_server.TOOL)]
        tool = found[0] if found else f"mcp__lab__{mcp_server.TOOL}"
        script: ModelScript = [[ModelCall(tool=tool, input={"word": "quiet"})], *HELLO]
        result, events = await room.play(script)
    assert result.status is RunStatus.COMPLETED
    assert "QUIET" in heard_by(server)
    [ended] = of_type(events, "tool_call_completed")
    assert mcp_server.TOOL in ended.tool_name
    assert "QUIET" in str(ended.tool_output)


async def test_an_image_of_a_prompt_reaches_the_model(
    acp_agent: InstalledAcpAgent, server: ModelServer, hermitage: IsolatedEnvironment
) -> None:
    file = hermitage.root / "dot.png"
    file.write_bytes(base64.b64decode(PNG))
    async with room_of(acp_agent, hermitage) as room:
        result, _ = await room.play(HELLO, images=[file])
    assert result.status is RunStatus.COMPLETED
    [turn] = [each for each in server.log.asked if each.purpose == "turn"]
    # goose sends images only to models that it knows.
    assert turn.images == (() if acp_agent.id == "goose" else (RequestImage("image/png", PNG),))


# --- login ----------------------------------------------------------------------------------------

KEYS = {
    "claude-agent-acp": ("ANTHROPIC_API_KEY",),
    "codex-acp": ("CODEX_MODEL_KEY",),
    "copilot": ("COPILOT_PROVIDER_API_KEY", "COPILOT_PROVIDER_BASE_URL", "COPILOT_OFFLINE"),
    "gemini": ("GEMINI_API_KEY",),
    "goose": ("GOOSE_PROVIDER",),
    "kimi-cli": (),
    "kimi-code": ("KIMI_MODEL_NAME", "KIMI_MODEL_API_KEY"),
}
"""The variables that are the login. Without one, opencode uses models that need none."""


@pytest.mark.parametrize("name", KEYS)
async def test_without_a_login_the_run_fails_and_names_the_remedy(
    name: str, server: ModelServer, hermitage: IsolatedEnvironment
) -> None:
    agent = installed_agent(name)
    environ = agent.environment(hermitage)
    environ = {key: value for key, value in environ.items() if key not in KEYS[name]}
    (hermitage.home / ".kimi" / "credentials" / "kimi-code.json").unlink(missing_ok=True)
    async with room_of(agent, hermitage, environment=environ) as room:
        result, _ = await room.play(HELLO)
    assert result.failure is not None
    assert result.failure.kind is FailureKind.AUTH_FAILED
    assert BUNDLED[name].login in result.failure.message
    assert server.log.asked == []


# --- settings -------------------------------------------------------------------------------------


class OwnSettings(NamedTuple):
    """Settings of an agent, other than its defaults."""

    mode: str
    config: dict[str, Json]


SETTINGS = {
    "claude-agent-acp": OwnSettings("acceptEdits", {"effort": "high"}),
    "codex-acp": OwnSettings("agent", {"reasoning_effort": "high"}),
    "copilot": OwnSettings(
        "https://agentclientprotocol.com/protocol/session-modes#autopilot", {"allow_all": "off"}
    ),
    "gemini": OwnSettings("autoEdit", {}),
    "goose": OwnSettings("smart_approve", {}),
    "kimi-code": OwnSettings("auto", {"thinking": "on"}),
    "opencode": OwnSettings("build", {"effort": "high"}),
}


@pytest.mark.parametrize("name", SETTINGS)
async def test_the_agents_own_mode_and_options_are_set_and_checked(
    name: str, hermitage: IsolatedEnvironment
) -> None:
    settings = SETTINGS[name]
    async with room_of(installed_agent(name), hermitage) as room:
        wrong: list[dict[str, Json]] = [{"mode": "nosuch"}, {"config": {"nosuch": "x"}}]
        for options in wrong:
            result, _ = await room.play(HELLO, options=options)
            assert result.failure is not None
            assert "'nosuch'" in result.failure.message
        given: dict[str, Json] = {"mode": settings.mode, "config": settings.config}
        result, events = await room.play(HELLO, options=given)
        assert result.status is RunStatus.COMPLETED, result.failure
        [started] = of_type(events, "run_started")
        assert started.permission.effective == settings.mode


@pytest.mark.parametrize(
    ("name", "version"), spoken("claude-agent-acp", "codex-acp", "kimi-code", "opencode")
)
async def test_a_session_is_continued_in_a_copy(
    name: str, version: int, server: ModelServer, hermitage: IsolatedEnvironment
) -> None:
    async with room_of(installed_agent(name), hermitage, version=version) as room:
        first, _ = await room.play([[ModelSay(text="The first answer.")]])
        script: ModelScript = [[ModelSay(text="The second answer.")]]
        copied, events = await room.play(script, options={"fork": True})
    assert copied.status is RunStatus.COMPLETED, copied.failure
    assert copied.provider_session_id != first.provider_session_id
    assert [each.content for each in of_type(events, "message_received")] == ["The second answer."]
    assert "The first answer." in last_turn(server)


WIDE = ("claude-agent-acp", "codex-acp", "kimi-code")


async def test_files_are_written_in_a_further_directory(
    acp_agent: InstalledAcpAgent, hermitage: IsolatedEnvironment
) -> None:
    other = hermitage.root / "other"
    other.mkdir()
    call = ModelCall(tool="write", input={"path": f"{other}/made.txt", "content": "x\n"})
    async with room_of(acp_agent, hermitage, "accept_edits") as room:
        result, _ = await room.play([[call], *HELLO], directories=[other])
    if acp_agent.id in WIDE:
        assert result.status is RunStatus.COMPLETED, result.failure
        assert (other / "made.txt").read_text() == "x\n"
    else:
        assert result.failure is not None
        assert result.failure.kind is FailureKind.CAPABILITY_MISSING
        assert result.failure.message.startswith("directories: ")


# --- messages and questions -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["claude-agent-acp", "codex-acp"])
async def test_a_message_steers_the_running_turn(
    name: str, server: ModelServer, hermitage: IsolatedEnvironment
) -> None:
    slow = prompt_with([[ModelSay(text="one two three four", deltas=4, pause=0.7)]], "Begin.")
    more = prompt_with([[ModelSay(text="Heard.")]], "Think of this, too.")
    async with (
        room_of(installed_agent(name), hermitage) as room,
        room.session.start(slow, options=room.options) as run,
    ):
        async for event in run:
            if event.type == "message_streamed":
                break
        await run.append(more)
        result = await run.result()
        events = [event async for event in run]
    assert (result.status, result.text) == (RunStatus.COMPLETED, "Heard.")
    assert len(of_type(events, "turn_completed")) == 1
    states = [each.state for each in of_type(events, "message_sent") if each.content == more]
    assert states[-1] == "sent"
    assert "Think of this, too." in last_turn(server)


def last_turn(server: ModelServer) -> str:
    """Return the last request of a turn: an agent may ask for a title at any time."""
    return str([each for each in server.log.asked if each.purpose == "turn"][-1].items)


CHOICES: Json = [{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}]
SEVERAL = {"claude-agent-acp": "multiSelect", "kimi-code": "multi_select"}


@pytest.mark.parametrize("answered", [True, False])
@pytest.mark.parametrize("name", SEVERAL)
async def test_a_question_of_the_model_is_put_to_the_caller_as_a_form(
    name: str, answered: bool, server: ModelServer, hermitage: IsolatedEnvironment
) -> None:
    asked: list[ApprovalRequest] = []

    async def approve(request: ApprovalRequest) -> Decision:
        asked.append(request)
        assert isinstance(request.tool_input, dict)
        schema: Any = request.tool_input["schema"]
        return Allow(tool_input={next(iter(schema["properties"])): "Blue"}) if answered else Allow()

    question: Json = {
        "question": "Which colour?",
        "header": "Colour",
        SEVERAL[name]: False,
        "options": CHOICES,
    }
    call = ModelCall(tool="AskUserQuestion", input={"questions": [question]})
    async with room_of(installed_agent(name), hermitage, "default", approve=approve) as room:
        result, events = await room.play([[call], *HELLO])
    assert result.status is RunStatus.COMPLETED
    [form] = asked
    assert form.reason == "Which colour?"
    assert ("Blue" in heard_by(server)) is answered
    warnings = [each.failure.message for each in of_type(events, "error_occurred")]
    assert any("declined" in each for each in warnings) is not answered
