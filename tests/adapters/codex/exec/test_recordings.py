"""Recordings of the real `codex exec`, if present: every frame in them is known."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from sessionmgr.model import FailureKind
from sessionmgr_adapters.codex.exec.frames import decode_lines
from sessionmgr_adapters.codex.exec.normalise import ExecState, normalise

VARIABLE = "SESSIONMGR_RECORDINGS"
FAILED = {
    "26_exec_500": (FailureKind.PROVIDER_ERROR, True),
    "27_exec_usage_limit": (FailureKind.QUOTA_EXHAUSTED, False),
    "29_exec_context_length": (FailureKind.CONTEXT_EXCEEDED, False),
}
CUT = {"32_exec_sigint", "33_exec_sigterm", "23_exec_resume_unknown"}


@pytest.fixture(scope="module")
def played() -> dict[str, tuple[list[str], ExecState]]:
    place = os.environ.get(VARIABLE)
    if place is None:
        pytest.skip(f"{VARIABLE} does not name the directory of the recordings")
    found: dict[str, tuple[list[str], ExecState]] = {}
    for path in sorted(Path(place, "codex").glob("*_exec_*.jsonl")):
        entries = map(json.loads, path.read_text().splitlines())
        lines = [json.dumps(each["msg"]).encode() for each in entries if each["dir"] == "<"]
        state = ExecState()
        if all(b'"type"' in line for line in lines):  # otherwise it is a recording of an app-server
            types = [each.type for frame in decode_lines(lines) for each in normalise(frame, state)]
            found[path.stem] = types, state
    assert len(found) > len(CUT)
    return found


def test_nothing_that_it_says_is_unknown(played: dict[str, tuple[list[str], ExecState]]) -> None:
    for name, (types, _) in played.items():
        assert not {"raw_received", "output_received"} & {*types}, name


def test_each_ends_as_it_did(played: dict[str, tuple[list[str], ExecState]]) -> None:
    for name, (_, state) in played.items():
        assert (state.last_turn is not None) == (name not in CUT), name
        failure = state.failure
        told = None if failure is None else (failure.kind, failure.retryable)
        assert told == FAILED.get(name), name
