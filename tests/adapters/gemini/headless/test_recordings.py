"""Recordings of a real headless Gemini, if present: every frame in them is known."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from sessionmgr.model import FailureKind, MessageReceived, RetryScheduled
from sessionmgr_adapters.gemini.headless.failures import RetryReader, error_failure
from sessionmgr_adapters.gemini.headless.frames import decode_lines
from sessionmgr_adapters.gemini.headless.normalise import HeadlessState, normalise

VARIABLE = "SESSIONMGR_RECORDINGS"
FAILED = {
    "sj-400ctx": (FailureKind.CONTEXT_EXCEEDED, False),
    "sj-drop": (FailureKind.PROVIDER_ERROR, True),
    "sj-empty": (FailureKind.PROVIDER_ERROR, True),
    "sj-errchunk": (FailureKind.PROVIDER_ERROR, True),
    "sj-quota": (FailureKind.QUOTA_EXHAUSTED, False),
}
CUT = {"sj-429", "sj-badflag", "sj-cancel-sigint", "sj-cancel-sigterm", "sj-nokey"}


class PlayedRecording:
    """What one recording says."""

    def __init__(self, entries: list[dict[str, Any]]) -> None:
        self.state = HeadlessState()
        out = [each["line"].encode() for each in entries if each["dir"] == "<"]
        frames = decode_lines([line for line in out if line != b"EOF"])
        self.events = [event for frame in frames for event in normalise(frame, self.state)]
        last: dict[str, int] = entries[-1]["line"]
        self.code: int = last["returncode"]
        reader = RetryReader()
        read = [reader.read(each["line"]) for each in entries if each["dir"] == "!"]
        self.retries = [each for each in read if isinstance(each, RetryScheduled)]

    @property
    def texts(self) -> list[str]:
        return [each.content for each in self.events if isinstance(each, MessageReceived)]


@pytest.fixture(scope="module")
def played() -> dict[str, PlayedRecording]:
    place = os.environ.get(VARIABLE)
    if place is None:
        pytest.skip(f"{VARIABLE} does not name the directory of the recordings")
    found = {
        path.stem: PlayedRecording([json.loads(line) for line in path.read_text().splitlines()])
        for path in sorted(Path(place, "gemini").glob("sj-*.jsonl"))
    }
    assert len(found) > len(CUT) + len(FAILED)
    return found


def test_nothing_that_it_says_is_unknown(played: dict[str, PlayedRecording]) -> None:
    for name, each in played.items():
        unknown = {"raw_received", "output_received"} & {event.type for event in each.events}
        assert not unknown, name


def test_each_ends_as_it_did(played: dict[str, PlayedRecording]) -> None:
    for name, each in played.items():
        outcome = each.state.outcome
        assert (outcome is None) == (name in CUT), name
        if outcome is None or outcome.status == "success":
            assert name not in FAILED
            continue
        said = outcome.error.message if outcome.error is not None else each.state.notice or ""
        failure = error_failure(said, each.code)
        assert (failure.kind, failure.retryable) == FAILED[name], name


def test_text_of_hidden_retries_is_shown_once(played: dict[str, PlayedRecording]) -> None:
    assert played["sj-errchunk"].texts == ["partial answer "]
    assert played["sj-drop"].texts == ["partial answer "]
    assert played["sj-plain"].texts == ["Hello from the fake model."]
    assert played["sj-429once"].texts == ["After rate limit."]


def test_retries_that_it_tells_are_reported(played: dict[str, PlayedRecording]) -> None:
    assert [each.attempt for each in played["sj-429"].retries] == [2, 3, 4, 5]
    assert [each.delay for each in played["sj-429once"].retries] == [5.686]
    assert played["sj-plain"].retries == []
