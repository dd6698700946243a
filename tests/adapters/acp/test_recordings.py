"""Recordings of real agents: no exception, no unknown frame, and the events that they stand for.

Those in tests/golden are always there; `SESSIONMGR_RECORDINGS` names a directory with more.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sessionmgr.model import Event, MessageReceived, ToolCallEnded, ToolCallStarted
from sessionmgr_adapters.acp.bundled_agents import BUNDLED
from sessionmgr_adapters.acp.updates import StateUpdate
from tests.adapters.acp.recorded import AcpReplay, RecordedTurn, play_recording

VARIABLE = "SESSIONMGR_RECORDINGS"
GOLDEN = Path(__file__).parents[2] / "golden" / "acp"
FILES = sorted(GOLDEN.rglob("*.jsonl"))
RUNS = [path for path in FILES if path.stem.startswith("prompts")]
UNKNOWN = {"raw_received", "output_received"}


def named(path: Path) -> str:
    return f"{path.parent.name}/{path.stem[-2:]}"


def replay(agent: str, name: str, version: int = 1) -> AcpReplay:
    [path] = GOLDEN.glob(f"{agent}-*/{name}*-v{version}.jsonl")
    return play_recording(path)


def check(replayed: AcpReplay) -> None:
    """Check what holds for each session."""
    assert [each for each in replayed.events if each.type in UNKNOWN] == []
    started = [e.tool_call_id for e in replayed.events if isinstance(e, ToolCallStarted)]
    ended = [e.tool_call_id for e in replayed.events if isinstance(e, ToolCallEnded)]
    assert set(ended) <= set(started)
    assert len(ended) <= len(started)
    if all(turn.end is not None for turn in replayed.turns):  # no prompt was sent too early
        assert sorted(ended) == sorted(started)
        for turn in replayed.turns:
            texts = [each.content for each in turn.events if isinstance(each, MessageReceived)]
            streamed = [getattr(each, "delta", "") for each in turn.named("message_streamed")]
            assert "".join(texts) == "".join(streamed)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_each_frame_of_a_golden_file_is_known(path: Path) -> None:
    check(play_recording(path))


def test_each_frame_of_the_recordings_is_known() -> None:
    place = os.environ.get(VARIABLE)
    if place is None:
        pytest.skip(f"{VARIABLE} does not name the directory of the recordings")
    files = sorted(Path(place).glob("*/acp-*.jsonl"))
    assert files
    for path in files:
        check(play_recording(path))


@pytest.mark.parametrize("path", RUNS, ids=named)
def test_a_plain_prompt_gives_reasoning_a_message_and_a_turn(path: Path) -> None:
    turn = play_recording(path).turn("plain")
    assert turn.failure is None
    assert [each.content for each in turn.events if isinstance(each, MessageReceived)] == [
        "Hello there."
    ]
    [thought] = turn.named("reasoning_received")
    assert str(getattr(thought, "content", "")).endswith("Let me think.")
    assert turn.named("turn_completed") == turn.events[-1:]
    assert isinstance(turn.end, StateUpdate) == path.stem.endswith("v2")


SHELLS = {
    "claude-agent-acp": "Bash",
    "codex-acp": "exec_command",
    "copilot": "sample",
    "gemini": "run_shell_command",
    "goose": "shell",
    "kimi-cli": "Shell",
    "kimi-code": "Bash",
    "opencode": "bash",
}
"""The name of the call of the shell; copilot reports only a description of it."""
COMMAND = "echo hi; echo err >&2; exit 3"


@pytest.mark.parametrize("path", RUNS, ids=named)
def test_a_call_of_the_shell_has_its_command_and_its_name(path: Path) -> None:
    turn = play_recording(path).turn("shell")
    [started] = [each for each in turn.events if isinstance(each, ToolCallStarted)]
    [ended] = [each for each in turn.events if isinstance(each, ToolCallEnded)]
    agent = path.parent.name.rpartition("-")[0]
    assert started.tool_name == ended.tool_name == SHELLS[agent]
    given = started.tool_input
    assert isinstance(given, dict)
    assert given["title" if agent == "gemini" else "command"] == COMMAND
    types = [each.type for each in turn.events]
    first = types.index("message_received")
    assert first < types.index("tool_call_started") < types.index(ended.type)
    assert turn.failure is None


@pytest.mark.parametrize("path", RUNS, ids=named)
def test_a_written_file_is_a_completed_call(path: Path) -> None:
    turn = play_recording(path).turn("write")
    [started] = [each for each in turn.events if isinstance(each, ToolCallStarted)]
    assert "out.txt" in str(started.tool_input)
    assert [each.type for each in turn.events].count("tool_call_completed") == 1


def test_output_is_reported_while_a_call_runs() -> None:
    for agent, version in (("goose", 1), ("opencode", 1), ("codex-acp", 1), ("codex-acp", 2)):
        turn = replay(agent, "prompts", version).turn("shell")
        deltas = [str(getattr(e, "output_delta", "")) for e in turn.named("tool_call_updated")]
        assert sorted("".join(deltas).split()) == ["err", "hi"], agent


def test_the_output_of_a_terminal_is_the_output_of_its_call() -> None:
    turn = replay("codex-acp", "prompts", 2).turn("shell")
    [ended] = [each for each in turn.events if isinstance(each, ToolCallEnded)]
    assert ended.tool_output == "hi\nerr\n"


def test_the_cost_of_a_turn_is_what_it_adds() -> None:
    turns = replay("claude-agent-acp", "prompts").turns
    costs = [
        cost
        for turn in turns
        for event in turn.named("token_usage_updated")
        if (cost := getattr(event, "cost", None))
    ]
    assert costs == pytest.approx([0.010884, 0.041284, 0.043036, 0.044672], rel=1e-3)


KINDS = {
    ("claude-agent-acp", 1, "401"): ("auth_failed", False),
    ("claude-agent-acp", 1, "429"): ("rate_limited", True),
    ("claude-agent-acp", 1, "500"): ("provider_error", True),
    ("claude-agent-acp", 2, "401"): ("auth_failed", False),
    ("claude-agent-acp", 2, "429"): ("rate_limited", True),
    ("claude-agent-acp", 2, "500"): ("provider_error", True),
    ("codex-acp", 1, "401"): ("auth_failed", False),
    ("codex-acp", 1, "429"): ("rate_limited", True),
    ("codex-acp", 1, "500"): ("overloaded", True),
    ("codex-acp", 2, "401"): ("auth_failed", False),
    ("codex-acp", 2, "429"): ("rate_limited", True),
    ("codex-acp", 2, "500"): ("overloaded", True),
    ("gemini", 1, "401"): ("auth_failed", False),
    ("goose", 1, "401"): ("auth_failed", False),
    ("goose", 1, "429"): ("rate_limited", True),
    ("goose", 1, "500"): ("provider_error", True),
    ("copilot", 1, "401"): ("auth_failed", False),
    ("copilot", 1, "429"): ("rate_limited", True),
    ("copilot", 1, "500"): ("provider_error", True),
    ("kimi-cli", 1, "401"): ("provider_error", False),
    ("kimi-cli", 1, "empty"): ("provider_error", False),
    ("kimi-code", 1, "401"): ("auth_failed", False),
    ("opencode", 1, "401"): ("auth_failed", False),
    ("opencode", 1, "429"): ("rate_limited", True),
}


@pytest.mark.parametrize(
    "case", KINDS, ids=lambda case: f"{case[0]}-v{case[1]}-{case[2]}" if case else ""
)
def test_a_failure_of_the_models_server_is_told_apart(case: tuple[str, int, str]) -> None:
    agent, version, scenario = case
    [path] = GOLDEN.glob(f"{agent}-*/failures*-v{version}.jsonl")
    turn: RecordedTurn = play_recording(path, BUNDLED[agent].error_text).turn(scenario)
    assert turn.failure is not None
    assert (turn.failure.kind.value, turn.failure.retryable) == KINDS[case]
    assert turn.failure.resumable


@pytest.mark.parametrize("agent", ["claude-agent-acp", "codex-acp", "goose", "copilot"])
def test_the_prompt_after_failures_succeeds(agent: str) -> None:
    [path] = GOLDEN.glob(f"{agent}-*/failures*-v1.jsonl")
    turn = play_recording(path, BUNDLED[agent].error_text).turn("plain")
    assert turn.failure is None


def test_the_two_versions_give_the_same_events() -> None:
    def kinds(events: list[Event]) -> list[str]:
        ignored = {"session_stats_updated", "token_usage_updated", "tool_call_updated"}
        return [each.type for each in events if each.type not in ignored]

    for agent in ("claude-agent-acp", "codex-acp"):
        first, second = replay(agent, "prompts", 1), replay(agent, "prompts", 2)
        for scenario in ("plain", "shell", "write"):
            one, two = first.turn(scenario), second.turn(scenario)
            assert kinds(one.events) == kinds(two.events), (agent, scenario)
