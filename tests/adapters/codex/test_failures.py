"""The kinds of failures, for recorded errors of Codex."""

import pytest

from sessionmgr.model import FailureKind as Kind, Json
from sessionmgr.model.timestamps import parse_timestamp
from sessionmgr.process import StderrTail
from sessionmgr_adapters.codex.failures import (
    failure_of,
    request_failure,
    retry_failure,
    stderr_tail_message,
)

LINE_CUT: Json = {"responseStreamDisconnected": {"httpStatusCode": None}}
CUT = "stream disconnected before completion: stream closed before response.completed"

# info, message, the info of the last retry; kind, retryable, resumable
SAID: list[tuple[Json, str, Json, Kind, bool, bool]] = [
    (
        "contextWindowExceeded",
        "Codex ran out of room in the model's context window.",
        None,
        Kind.CONTEXT_EXCEEDED,
        False,
        False,
    ),
    ("cyberPolicy", "cyber", None, Kind.REFUSED, False, True),
    (
        "internalServerError",
        "We're currently experiencing high demand.",
        None,
        Kind.PROVIDER_ERROR,
        True,
        True,
    ),
    (
        "other",
        "Incomplete response returned, reason: max_output_tokens",
        None,
        Kind.PROVIDER_ERROR,
        False,
        True,
    ),
    ("other", "Invalid prompt: flagged", None, Kind.PROVIDER_ERROR, False, True),
    ("other", "Missing environment variable: `KEY`.", None, Kind.PROVIDER_ERROR, False, True),
    ("other", CUT, LINE_CUT, Kind.PROVIDER_ERROR, True, True),
    ("other", CUT, None, Kind.PROVIDER_ERROR, False, True),
    ("serverOverloaded", "at capacity", None, Kind.OVERLOADED, True, True),
    ("usageLimitExceeded", "Quota exceeded.", None, Kind.QUOTA_EXHAUSTED, False, True),
    ("modelNotFound", "no such model", None, Kind.MODEL_NOT_FOUND, False, True),
    (
        {"httpConnectionFailed": {"httpStatusCode": 401}},
        "unexpected status 401 Unauthorized",
        None,
        Kind.AUTH_FAILED,
        False,
        True,
    ),
    (
        {"httpConnectionFailed": {"httpStatusCode": 404}},
        "unexpected status 404 Not Found",
        None,
        Kind.PROVIDER_ERROR,
        False,
        True,
    ),
    (
        {"httpConnectionFailed": {"httpStatusCode": 503}},
        "unexpected status 503 Service Unavailable",
        None,
        Kind.OVERLOADED,
        True,
        True,
    ),
    (
        {"httpConnectionFailed": {"httpStatusCode": None}},
        "Connection failed: error sending request",
        None,
        Kind.PROVIDER_ERROR,
        True,
        True,
    ),
    (
        {"responseTooManyFailedAttempts": {"httpStatusCode": 429}},
        "exceeded retry limit, last status: 429 Too Many Requests",
        None,
        Kind.RATE_LIMITED,
        True,
        True,
    ),
]


@pytest.mark.parametrize(
    ("info", "message", "before", "kind", "retryable", "resumable"),
    SAID,
    ids=[f"{n}-{each[3].value}" for n, each in enumerate(SAID)],
)
def test_each_error_that_was_recorded_has_its_kind(
    info: Json, message: str, before: Json, kind: Kind, retryable: bool, resumable: bool
) -> None:
    failure = failure_of(info, message, before=before)
    assert (failure.kind, failure.retryable, failure.resumable) == (kind, retryable, resumable)
    assert (failure.message, failure.phase) == (message, "turn")


def test_a_used_up_quota_is_a_rate_limit_once_it_is_known_when_it_resets() -> None:
    failure = failure_of("usageLimitExceeded", "You've hit your usage limit.", resets_at=1.9e9)
    assert (failure.kind, failure.retryable) == (Kind.RATE_LIMITED, True)
    assert failure.retry_at is not None
    assert parse_timestamp(failure.retry_at) == 1.9e9


def test_when_a_limit_resets_says_nothing_of_other_errors() -> None:
    failure = failure_of("contextWindowExceeded", "full", resets_at=1.9e9)
    assert (failure.kind, failure.retry_at) == (Kind.CONTEXT_EXCEEDED, None)


@pytest.mark.parametrize(
    "info", [None, "", "newlyInvented", {}, {"a": 1, "b": 2}, {"newlyInvented": 7}, 7, ["other"]]
)
def test_what_nobody_knows_is_not_guessed(info: Json) -> None:
    failure = failure_of(info, "429 Too Many Requests", before=None)
    assert (failure.kind, failure.retryable) == (Kind.PROVIDER_ERROR, False)


def test_the_class_and_the_status_are_what_the_provider_calls_it() -> None:
    assert failure_of({"httpConnectionFailed": {"httpStatusCode": 401}}, "").provider_code == (
        "httpConnectionFailed:401"
    )
    assert failure_of("other", "").provider_code == "other"
    assert failure_of("other", "").message == "the turn failed with other"


def test_what_is_tried_again_is_retryable_whatever_it_is() -> None:
    limited = retry_failure({"responseStreamDisconnected": {"httpStatusCode": 429}}, "again 1/3")
    assert (limited.kind, limited.retryable) == (Kind.RATE_LIMITED, True)
    unauthorised = retry_failure({"responseStreamDisconnected": {"httpStatusCode": 401}}, "1/1")
    assert (unauthorised.kind, unauthorised.retryable) == (Kind.AUTH_FAILED, True)
    assert retry_failure(LINE_CUT, "again").kind is Kind.PROVIDER_ERROR


@pytest.mark.parametrize(
    ("code", "message", "kind", "retryable"),
    [
        (-32600, "thread/resume failed: no rollout found for thread id x", "session_not_found", 0),
        (-32600, "thread x already has an active writer", "session_busy", 1),
        (-32600, "codex account authentication required", "auth_failed", 0),
        (-32600, "Invalid request: unknown variant `wild`", "config_invalid", 0),
        (-32602, "input too large", "config_invalid", 0),
        (-32603, "failed to load configuration", "provider_error", 0),
        (-32001, "Server overloaded; retry later.", "overloaded", 1),
    ],
)
def test_an_error_that_answers_a_request_has_its_kind(
    code: int, message: str, kind: str, retryable: int
) -> None:
    failure = request_failure("thread/resume", code, message)
    assert (failure.kind.value, failure.retryable) == (kind, bool(retryable))
    assert failure.message == f"Codex refused thread/resume: {message}"
    assert failure.phase == "start"


def test_what_it_always_complains_of_is_no_cause_of_its_death() -> None:
    said = StderrTail()
    said.feed(b"x ERROR y: Codex could not find bubblewrap on PATH. Install it.\nit broke\n")
    assert stderr_tail_message(said).short() == "it broke"
