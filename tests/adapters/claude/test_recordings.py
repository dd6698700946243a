"""Recordings of the real program, in the repository and elsewhere: no frame is unknown."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

import pytest

from sessionmgr.model import Event, FailureKind, Run, TokenUsageUpdated, ToolApprovalDenied
from sessionmgr.model.run_reducer import reduce_all
from sessionmgr_adapters.claude.frames import ResultFrame, decode_lines
from sessionmgr_adapters.claude.normalise import normalise
from sessionmgr_adapters.claude.state import ClaudeState

VARIABLE = "SESSIONMGR_RECORDINGS"
GOLDEN = Path(__file__).parents[2] / "golden" / "claude"


class PlayedRecording(NamedTuple):
    events: list[Event]
    results: list[ResultFrame]
    ends: list[tuple[str, bool, bool]]
    """Of each failed result: kind, retryable, resumable."""
    state: ClaudeState


def said(path: Path) -> list[bytes]:
    lines: list[bytes] = []
    for line in path.read_bytes().splitlines():
        entry = json.loads(line)
        if entry["dir"] == "<":
            what = entry.get("line", entry.get("msg"))
            lines.append((what if isinstance(what, str) else json.dumps(what)).encode())
    return lines


def play(path: Path) -> PlayedRecording:
    state = ClaudeState()
    played = PlayedRecording([], [], [], state)
    for frame in decode_lines(said(path)):
        played.events.extend(normalise(frame, state))
        if isinstance(frame, ResultFrame):
            played.results.append(frame)
            if (failure := state.failure) is not None:
                played.ends.append((failure.kind.value, failure.retryable, failure.resumable))
    return played


@pytest.fixture(scope="module")
def recordings() -> dict[str, PlayedRecording]:
    place = os.environ.get(VARIABLE)
    if place is None:
        pytest.skip(f"{VARIABLE} does not name the directory of the recordings")
    found = {path.stem: play(path) for path in sorted(Path(place, "claude").glob("*.jsonl"))}
    assert found
    return found


@pytest.fixture(scope="module")
def golden() -> dict[str, PlayedRecording]:
    """The recordings in the repository, by version."""
    found = {f"{path.parent.name}/{path.stem}": play(path) for path in GOLDEN.rglob("*.jsonl")}
    assert found
    return found


@pytest.fixture(scope="module", params=["golden", "recordings"])
def all_said(request: pytest.FixtureRequest) -> dict[str, PlayedRecording]:
    """One set of recordings."""
    found: dict[str, PlayedRecording] = request.getfixturevalue(request.param)
    return found


def test_nothing_that_it_says_is_unknown(all_said: dict[str, PlayedRecording]) -> None:
    unknown = {
        name: [each for each in played.events if each.type in {"raw_received", "output_received"}]
        for name, played in all_said.items()
    }
    assert {name for name, events in unknown.items() if events} == set()


def test_each_run_starts_once_before_all_else(all_said: dict[str, PlayedRecording]) -> None:
    for name, played in all_said.items():
        types = [each.type for each in played.events]
        if types:
            assert types[0] == "run_started", name
            assert types.count("run_started") == 1, name


def test_no_call_of_a_tool_ends_that_has_not_begun(all_said: dict[str, PlayedRecording]) -> None:
    for name, played in all_said.items():
        open_calls: set[str] = set()
        for each in played.events:
            if each.type == "tool_call_started":
                assert getattr(each, "tool_call_id") not in open_calls, name  # noqa: B009
                open_calls.add(getattr(each, "tool_call_id"))  # noqa: B009
            elif each.type in {"tool_call_completed", "tool_call_failed"}:
                open_calls.remove(getattr(each, "tool_call_id"))  # noqa: B009


def test_what_was_used_is_the_sum_of_what_it_says_was_new(
    all_said: dict[str, PlayedRecording],
) -> None:
    for name, played in all_said.items():
        used = [each for each in played.events if isinstance(each, TokenUsageUpdated)]
        told = sum(
            usage.output_tokens
            for result in played.results
            for usage in (result.since_last or {}).values()
        )
        if all(result.since_last is not None for result in played.results):
            assert sum(each.usage.output for each in used) == told, name


def test_the_text_of_a_run_is_what_its_result_says(all_said: dict[str, PlayedRecording]) -> None:
    compared = 0
    for name, played in all_said.items():
        if len(played.results) != 1 or played.ends or played.results[0].structured_output:
            continue
        if name == "p-default-format":
            continue  # it was started without streaming
        run = reduce_all(Run(id="r", session_id="s", provider="claude"), stamped(played.events))
        if played.results[0].result:
            assert run.text == played.results[0].result, name
            compared += 1
    assert compared > 15


def stamped(events: list[Event]) -> list[Event]:
    return [
        each.stamped(seq=seq, at="", session_id="s", run_id="r", provider="claude")
        for seq, each in enumerate(events, 1)
    ]


STOPPED = ("provider_error", False, True)
LIMITED = ("rate_limited", True, True)
ENDS: dict[str, list[tuple[str, bool, bool]]] = {
    "err-400": [("provider_error", False, True)] * 2,
    "err-413": [("context_exceeded", False, False)],
    "err-429-long-retry-after": [LIMITED],
    "err-429-noretries": [LIMITED] * 2,
    "err-529-exhausted": [("overloaded", True, True)],
    "err-credit": [("billing", False, True)],
    "json-schema-always-invalid": [("structured_invalid", False, True)],
    "max-budget": [("budget_exceeded", False, True)] * 2,
    "max-budget-p": [("budget_exceeded", False, True)],
    "max-turns": [("budget_exceeded", False, True)] * 2,
    "model-unknown": [("model_not_found", False, True)],
    "no-key": [("auth_failed", False, True)],
    "no-server": [("provider_error", True, True)],
    "rl-429-unified-apikey": [LIMITED],
    "rl-429-unified-oauth": [LIMITED] * 2,
    "session-id-resume-unknown": [("session_not_found", False, False)],
    "stop-max-tokens-always": [("provider_error", False, True)],
    "stop-refusal": [("refused", False, True)] * 2,
}


def test_what_went_wrong_is_told_apart(recordings: dict[str, PlayedRecording]) -> None:
    for name, played in recordings.items():
        if any(each in name for each in ("interrupt", "end-session", "sigint", "unanswered")):
            assert set(played.ends) == {STOPPED} or not played.ends, name
        else:
            assert played.ends == ENDS.get(name, []), name


GOLDEN_ENDS: dict[str, tuple[str, bool, bool]] = {
    "a_hanging_model_is_left_by_an_interrupt": STOPPED,
    "a_key_that_is_not_known_ends_in_an_error": ("auth_failed", False, True),
    "limits_of_a_subscription_are_told-True": LIMITED,
}


def test_what_went_wrong_is_told_apart_by_each_version(golden: dict[str, PlayedRecording]) -> None:
    assert {name.partition("/")[0] for name in golden} == {"2.1.197", "2.1.327"}
    for name, played in golden.items():
        version, _, case = name.partition("/")
        known = GOLDEN_ENDS.get(case)
        if (version, case) == (
            "2.1.197",
            "what_was_said_before_an_error_stays_and_is_gone_on_from",
        ):
            known = ("provider_error", True, True)  # the last retry has failed
        assert played.ends == ([] if known is None else [known]), name


def test_a_limit_that_was_hit_says_when_it_is_over(recordings: dict[str, PlayedRecording]) -> None:
    failure = recordings["rl-429-unified-oauth"].state.failure
    assert failure is not None
    assert failure.kind is FailureKind.RATE_LIMITED
    assert failure.retry_at == "2026-11-19T12:06:40.000Z"


def test_what_was_denied_without_a_question_is_told_once(
    all_said: dict[str, PlayedRecording],
) -> None:
    for name, played in all_said.items():
        denied = [
            each.tool_call_id for each in played.events if isinstance(each, ToolApprovalDenied)
        ]
        assert len(denied) == len(set(denied)), name


def test_what_was_denied_is_told_at_all(recordings: dict[str, PlayedRecording]) -> None:
    assert any(isinstance(each, ToolApprovalDenied) for each in recordings["mode-default"].events)


def test_a_result_of_another_shape_ends_a_turn_all_the_same() -> None:
    line = b'{"type":"result","subtype":"success","is_error":false,"num_turns":"two","result":"x"}'
    (frame,) = decode_lines([line])
    assert isinstance(frame, ResultFrame)
    assert (frame.result, frame.num_turns) == ("x", 0)


def test_an_unknown_type_is_reported_unchanged() -> None:
    state = ClaudeState()
    frames = decode_lines([b'{"type":"system","subtype":"new"}', b'{"type":"new"}', b"hello"])
    told = [event.type for frame in frames for event in normalise(frame, state)]
    assert told == ["raw_received", "raw_received", "output_received"]
    assert not state.started
