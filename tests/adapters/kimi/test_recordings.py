"""Recordings of the real program, if present: no exception, and no unknown frame."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sessionmgr.adapter.kit import PeerRequest, RpcAnswer
from sessionmgr.model import Event, Failure, MessageReceived, ToolCallEnded, ToolCallStarted
from sessionmgr.wire import UntypedFrame
from sessionmgr_adapters.kimi.failures import answer_failure
from sessionmgr_adapters.kimi.frames import decode_lines, fields_of
from sessionmgr_adapters.kimi.normalise import KimiState, end_turn, normalise
from sessionmgr_adapters.kimi.request_handler import approval_request

VARIABLE = "SESSIONMGR_RECORDINGS"


class PlayedKimiRecording(NamedTuple):
    events: list[Event]
    failures: list[Failure | None]
    """Of each turn."""


def play(path: Path) -> PlayedKimiRecording:
    played, state = PlayedKimiRecording([], []), KimiState()
    methods: dict[str, str] = {}
    for line in path.read_bytes().splitlines():
        entry = json.loads(line)
        if not isinstance(entry["msg"], dict):
            continue
        message: dict[str, Any] = entry["msg"]
        if entry["dir"] == ">":
            methods[message["id"]] = message.get("method", "")
            if message.get("method") == "replay":  # which the adapter never requests
                break
        if entry["dir"] != "<":
            continue
        if message.get("id") in methods and "method" not in message:  # our calls have other ids
            message["id"] = f"1:{methods[message['id']]}"
        for frame in decode_lines([json.dumps(message).encode()]):
            refused = isinstance(frame, UntypedFrame) and frame.value is None
            assert refused or not isinstance(frame, UntypedFrame), frame
            if not refused:
                played.events.extend(normalise(frame, state))
            if isinstance(frame, PeerRequest) and frame.method == "ApprovalRequest":
                request = approval_request(frame.params, state, ["/lab/kimi/ws"])
                assert request.effect in {"edit", "command"}
                assert request.tool_input
            if isinstance(frame, RpcAnswer) and frame.method == "prompt":
                played.events.extend(end_turn(state, fields_of(frame).get("status")))
                played.failures.append(answer_failure(frame, has_output=state.has_output))
                state = KimiState()
    return played


@pytest.fixture(scope="module")
def recordings() -> dict[str, PlayedKimiRecording]:
    place = os.environ.get(VARIABLE)
    if place is None:
        pytest.skip(f"{VARIABLE} does not name the directory of the recordings")
    found = {path.stem: play(path) for path in sorted(Path(place, "kimi").glob("wire-*.jsonl"))}
    assert found
    return found


def test_nothing_that_it_says_is_unknown(recordings: dict[str, PlayedKimiRecording]) -> None:
    unknown = {"raw_received", "output_received", "error_occurred"}
    for name, played in recordings.items():
        assert [each for each in played.events if each.type in unknown] == [], name


def test_what_begins_ends_once_or_was_cut(recordings: dict[str, PlayedKimiRecording]) -> None:
    for name, played in recordings.items():
        begun = [each.tool_call_id for each in played.events if isinstance(each, ToolCallStarted)]
        ended = [each.tool_call_id for each in played.events if isinstance(each, ToolCallEnded)]
        assert len(set(begun)) == len(begun), name
        assert len(set(ended)) == len(ended), name
        assert set(ended) <= set(begun), name


def test_what_went_wrong_has_its_kind(recordings: dict[str, PlayedKimiRecording]) -> None:
    kinds = [each and each.kind.value for each in recordings["wire-errors"].failures]
    lost = ["provider_error"] * 4  # a cut stream, a fault in it, an empty answer, a status of 500
    assert kinds == [None, "rate_limited", "auth_failed", "context_exceeded", *lost, None]
    [broken] = recordings["wire-anthropic"].failures
    assert broken is not None
    assert (broken.kind, broken.provider_code) == ("provider_error", "-32603")


def test_texts_are_received_whole(recordings: dict[str, PlayedKimiRecording]) -> None:
    texts = [e.content for e in recordings["wire-basic"].events if isinstance(e, MessageReceived)]
    assert "Hello from the fake model." in texts
    assert "The answer is 42." in texts
