"""The classification of Gemini's errors."""

from __future__ import annotations

import pytest

from sessionmgr.model import FailureKind as Kind
from sessionmgr.process import EmptyProof, ExitKind, ExitReport, StderrTail
from sessionmgr_adapters.gemini.headless.failures import (
    RetryReader,
    error_failure,
    missing_outcome_failure,
    relevant_lines,
)

CONTEXT = '{"error":{"code":400,"message":"maximum context length exceeded","status":"X"}}'
BLOCKED = "The model response was blocked due to safety settings."
EMPTY = "The model returned an empty response with no text or thoughts."

# Message, exit code, kind, retryable.
SAID = [
    (f"[API Error: {CONTEXT}]", 144, Kind.CONTEXT_EXCEEDED, False),
    ('[API Error: {"error":{"code":401,"message":"no"}}]', 145, Kind.AUTH_FAILED, False),
    ("[API Error: API key not valid.]", 144, Kind.AUTH_FAILED, False),
    ("[API Error: no]", 145, Kind.AUTH_FAILED, False),
    ("[API Error: gone]", 148, Kind.MODEL_NOT_FOUND, False),
    ("[API Error: You have exhausted your daily quota]\nWait.", 173, Kind.QUOTA_EXHAUSTED, False),
    ("[API Error: slow down]", 173, Kind.RATE_LIMITED, True),
    ("[API Error: oops]", 244, Kind.PROVIDER_ERROR, True),
    ("[API Error: oops]", 247, Kind.OVERLOADED, True),
    ("[API Error: oops]", 144, Kind.PROVIDER_ERROR, False),
    ("[API Error: terminated]", 1, Kind.PROVIDER_ERROR, True),
    ("Model stream ended without a finish reason.", 0, Kind.PROVIDER_ERROR, True),
    (EMPTY, 0, Kind.PROVIDER_ERROR, True),
    (BLOCKED, 0, Kind.REFUSED, False),
    ("Reached max session turns for this session.", 53, Kind.BUDGET_EXCEEDED, False),
    ("disk full", 54, Kind.PROVIDER_ERROR, False),
    ("no sandbox", 44, Kind.START_FAILED, False),
    ("something else", None, Kind.PROVIDER_ERROR, False),
]


@pytest.mark.parametrize(("message", "code", "kind", "retryable"), SAID)
def test_each_error_has_its_kind(
    message: str, code: int | None, kind: Kind, *, retryable: bool
) -> None:
    failure = error_failure(message, code)
    assert (failure.kind, failure.retryable) == (kind, retryable)
    assert failure.resumable is (kind is not Kind.CONTEXT_EXCEEDED)
    assert failure.exit_code == code


def test_the_message_of_the_server_is_told_without_its_wrapping() -> None:
    assert error_failure(f"[API Error: {CONTEXT}]").message == "maximum context length exceeded"
    assert error_failure("[API Error: terminated]\nTry later.").message == "terminated\nTry later."
    assert error_failure("").message
    assert error_failure(f"[API Error: {CONTEXT}]").provider_code == "400"


def test_a_status_that_only_stderr_names_counts() -> None:
    logged = "    at f (file.js:1) {\n  code: 404\n}\n"
    failure = error_failure("[API Error: no such thing]", 1, logged)
    assert (failure.kind, failure.provider_code) == (Kind.MODEL_NOT_FOUND, "404")
    assert error_failure("[API Error: no such thing]", 145, logged).kind is Kind.AUTH_FAILED


def exited(code: int) -> ExitReport:
    return ExitReport(
        exit_code=code,
        signal=None,
        ending=ExitKind.EXITED,
        forced=False,
        killed_by_os=False,
        emptied=EmptyProof.SWEPT,
    )


def tail_of(text: str) -> StderrTail:
    tail = StderrTail()
    tail.feed(text.encode())
    return tail


UNTRUSTED = (
    'Approval mode overridden to "default" because the folder is not trusted.\n'
    "\x1b[31mGemini CLI is not running in a trusted directory.\x1b[0m\n"
)
NOISE = "Ripgrep is not available.\n[STARTUP] Phase 'x'\n    at f (file.js:1)\n"


@pytest.mark.parametrize(
    ("stderr", "code", "kind", "words"),
    [
        ("you must specify the GEMINI_API_KEY variable.", 41, Kind.AUTH_FAILED, "GEMINI_API_KEY"),
        (UNTRUSTED, 55, Kind.CONFIG_INVALID, "set the option trust"),
        ("Invalid telemetry", 52, Kind.CONFIG_INVALID, "Invalid telemetry"),
        ("Error resuming session: Invalid session identifier x", 42, Kind.SESSION_NOT_FOUND, "x"),
        ("No previous sessions found for this project", 42, Kind.SESSION_NOT_FOUND, "project"),
        ("Unknown argument: nope", 1, Kind.PROCESS_EXITED, "(exit code 1): Unknown argument"),
        (NOISE, 0, Kind.PROCESS_EXITED, "ended without a result (exit code 0)"),
    ],
)
def test_a_start_that_comes_to_nothing_says_why(
    stderr: str, code: int, kind: Kind, words: str
) -> None:
    failure = missing_outcome_failure(exited(code), tail_of(stderr), has_begun=False)
    assert (failure.kind, failure.phase, failure.exit_code) == (kind, "start", code)
    assert words in failure.message
    assert "Approval mode" not in failure.message
    assert not failure.resumable


def test_a_session_that_ends_without_a_result_can_be_resumed() -> None:
    failure = missing_outcome_failure(exited(0), tail_of(NOISE), has_begun=True)
    assert (failure.kind, failure.phase) == (Kind.PROCESS_EXITED, "turn")
    assert failure.retryable
    assert failure.resumable


def test_an_error_that_only_stderr_tells_has_its_kind() -> None:
    where = "Error when talking to Gemini API Full report available at: /tmp/report.json"
    told = f"{where} _ApiError: {CONTEXT}\n    at f (file.js:1) {{\n  status: 400\n}}\n"
    failure = missing_outcome_failure(exited(1), tail_of(told), has_begun=False)
    assert (failure.kind, failure.provider_code) == (Kind.CONTEXT_EXCEEDED, "400")
    assert failure.message == "maximum context length exceeded"


def test_lines_for_machines_are_left_out() -> None:
    assert relevant_lines(f"{NOISE}\n  broken  \n") == "broken"


def test_retries_are_read_in_one_line_or_in_two() -> None:
    reader = RetryReader()
    assert reader.read("Attempt 1 failed: rate") is None
    found = reader.read("Suggested retry after 1s.. Retrying after 5374ms...")
    assert found is not None
    assert (found.attempt, found.delay) == (2, 5.374)
    assert found.failure is not None
    assert (found.failure.kind, found.failure.message) == (Kind.RATE_LIMITED, "rate")
    found = reader.read("Attempt 2 failed: rate. Retrying after 10ms...")
    assert found is not None
    assert (found.attempt, found.delay) == (3, 0.01)
    assert reader.read("Retrying after 5ms") is None
    assert reader.read("anything") is None


SERVER_ERROR = '_ApiError: {"error":{"code":503,"message":"busy"}}'


@pytest.mark.parametrize(
    ("line", "kind", "code", "message"),
    [
        ("Attempt 1 failed: rate. Retrying after 9ms...", Kind.RATE_LIMITED, "429", "rate"),
        (
            f"Attempt 1 failed with status 503. Retrying with backoff... {SERVER_ERROR}",
            *(Kind.OVERLOADED, "503", "busy"),
        ),
        (
            "Attempt 1 failed with 429 error (no Retry-After header). Retrying with backoff...",
            *(Kind.RATE_LIMITED, "429", "no reason given"),
        ),
        (
            "Attempt 1 failed. Retrying with backoff... Error: fetch failed",
            *(Kind.PROVIDER_ERROR, None, "Error: fetch failed"),
        ),
    ],
)
def test_a_retry_has_the_kind_of_its_failure(
    line: str, kind: Kind, code: str | None, message: str
) -> None:
    found = RetryReader().read(line)
    assert found is not None
    assert found.attempt == 2
    assert found.failure is not None
    assert (found.failure.kind, found.failure.provider_code) == (kind, code)
    assert found.failure.message == message
