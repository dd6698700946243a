"""Recordings of the real program, if present: no exception, and no unknown frame."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

import pytest

from sessionmgr.adapter.kit.json_rpc_caller import PeerRequest
from sessionmgr.model import (
    Event,
    MessageReceived,
    TokenUsageUpdated,
    ToolCallEnded,
    ToolCallStarted,
)
from sessionmgr.wire import RpcNotification, RpcRequest, RpcResponse
from sessionmgr.wire.json_rpc import decode_rpc
from sessionmgr_adapters.codex.approvals import APPROVALS, CALL, approval_request
from sessionmgr_adapters.codex.decode import decode_notice, params_thread, peer_request_of
from sessionmgr_adapters.codex.failures import failure_of_end
from sessionmgr_adapters.codex.frames import (
    CodexFrame,
    ItemEndedNotice,
    TokenUsageNotice,
    TurnEndedNotice,
)
from sessionmgr_adapters.codex.items import AgentMessageItem
from sessionmgr_adapters.codex.normalise import normalise
from sessionmgr_adapters.codex.state import CodexState

VARIABLE = "SESSIONMGR_RECORDINGS"
GOLDEN = Path(__file__).parents[2] / "golden" / "codex"


class PlayedCodexRecording(NamedTuple):
    events: dict[str, list[Event]]
    """By thread."""
    frames: list[CodexFrame]
    ends: list[tuple[str, bool, bool]]
    """Of each failed turn: kind, retryable, resumable."""


def said(path: Path) -> list[bytes]:
    lines: list[bytes] = []
    for line in path.read_bytes().splitlines():
        entry = json.loads(line)
        if entry["dir"] == "<":
            what = entry.get("line", entry.get("msg"))
            lines.append((what if isinstance(what, str) else json.dumps(what)).encode())
    return lines


def play(path: Path) -> PlayedCodexRecording:
    states: dict[str, CodexState] = {}
    played = PlayedCodexRecording({}, [], [])
    for line in said(path):
        for message in decode_rpc(line):
            frame: CodexFrame
            match message:
                case RpcNotification():
                    frame = decode_notice(message)
                case RpcRequest():
                    frame = peer_request_of(message)
                case RpcResponse():
                    continue
                case _:
                    continue
            played.frames.append(frame)
            thread = _thread(frame)
            state = states.setdefault(thread, CodexState())
            state.thread = thread
            state.turn = getattr(frame, "turn_id", state.turn)
            played.events.setdefault(thread, []).extend(normalise(frame, state))
            if isinstance(frame, TurnEndedNotice):
                failure = failure_of_end(frame.turn, state)
                if failure is not None:
                    end = (failure.kind.value, failure.retryable, failure.resumable)
                    played.ends.append(end)
            if isinstance(frame, PeerRequest):
                assert frame.method in {*APPROVALS, CALL}
                request = approval_request(frame, state.tools, "/lab/proj", ["/lab/proj"])
                assert request.tool_name
    return played


def _thread(frame: CodexFrame) -> str:
    if isinstance(frame, PeerRequest):
        return params_thread(frame.params) or ""
    return getattr(frame, "thread_id", "")


@pytest.fixture(scope="module")
def recordings() -> dict[str, PlayedCodexRecording]:
    place = os.environ.get(VARIABLE)
    if place is None:
        pytest.skip(f"{VARIABLE} does not name the directory of the recordings")
    files = sorted(Path(place, "codex").glob("*.jsonl"))
    found = {path.stem: play(path) for path in files if "exec" not in path.stem}
    assert found
    return found


@pytest.fixture(scope="module")
def golden() -> dict[str, PlayedCodexRecording]:
    """Return the recordings of the app-server in this repository."""
    files = [path for path in GOLDEN.rglob("*.jsonl") if b'"initialize"' in path.read_bytes()]
    assert files
    return {f"{path.parent.name}/{path.stem}": play(path) for path in files}


def events_of(played: PlayedCodexRecording) -> list[Event]:
    return [event for events in played.events.values() for event in events]


def test_nothing_that_it_says_is_unknown(
    recordings: dict[str, PlayedCodexRecording], golden: dict[str, PlayedCodexRecording]
) -> None:
    unknown = {"raw_received", "output_received"}
    found = {
        name
        for name, played in {**recordings, **golden}.items()
        if any(each.type in unknown for each in events_of(played))
    }
    assert found == set()


def test_what_begins_ends_once_or_was_given_up(recordings: dict[str, PlayedCodexRecording]) -> None:
    for name, played in recordings.items():
        for events in played.events.values():
            begun = [each.tool_call_id for each in events if isinstance(each, ToolCallStarted)]
            ended = [each.tool_call_id for each in events if isinstance(each, ToolCallEnded)]
            assert len(set(begun)) == len(begun), name
            assert len(set(ended)) == len(ended), name
            assert set(ended) <= set(begun), name


def test_each_run_starts_once_before_all_else(golden: dict[str, PlayedCodexRecording]) -> None:
    for name, played in golden.items():
        for thread, events in played.events.items():
            types = [each.type for each in events if each.type != "error_occurred"]
            if thread and types:
                assert types[0] == "run_started", name
                assert types.count("run_started") == 1, name


def test_what_is_said_is_what_whole_items_say(recordings: dict[str, PlayedCodexRecording]) -> None:
    for name, played in recordings.items():
        whole = [
            frame.item.text
            for frame in played.frames
            if isinstance(frame, ItemEndedNotice) and isinstance(frame.item, AgentMessageItem)
        ]
        told = [each.content for each in events_of(played) if isinstance(each, MessageReceived)]
        assert sorted(told) == sorted(filter(None, whole)), name


def test_what_was_used_is_never_more_than_the_total(
    recordings: dict[str, PlayedCodexRecording],
) -> None:
    for name, played in recordings.items():
        totals: dict[str, int] = {}
        for frame in played.frames:
            if isinstance(frame, TokenUsageNotice):
                totals[frame.thread_id] = frame.token_usage.total.output_tokens
        for thread, total in totals.items():
            booked = [
                each.usage.output
                for each in played.events[thread]
                if isinstance(each, TokenUsageUpdated)
            ]
            assert sum(booked) <= total, name


LIMITED = ("rate_limited", True, True)
CUT = ("provider_error", True, True)
OTHER = ("provider_error", False, True)
ENDS: dict[str, list[tuple[str, bool, bool]]] = {
    "13b_429_forever": [LIMITED],
    "13d_500_forever": [CUT],
    "13e_503_forever": [("overloaded", True, True)],
    "13i_usage_limit_429": [("quota_exhausted", False, True)],
    "13k_failed_context_length": [("context_exceeded", False, False)],
    "13o_incomplete_max_tokens": [OTHER],
    "13q_401": [("auth_failed", False, True)],
    "13t_failed_invalid_prompt": [OTHER],
    "13u_failed_cyber": [("refused", False, True)],
}


def test_what_went_wrong_is_told_apart(recordings: dict[str, PlayedCodexRecording]) -> None:
    assert {name: set(recordings[name].ends) for name in ENDS} == {
        name: set(ends) for name, ends in ENDS.items()
    }
