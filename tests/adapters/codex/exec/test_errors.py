"""The classification of errors of `codex exec`, and the texts that are removed from them."""

import pytest

from sessionmgr.model import Failure, FailureKind as Kind, RetryScheduled
from sessionmgr_adapters.codex.exec.frames import clean_message, parse_error, turn_error
from sessionmgr_adapters.codex.exec.normalise import ExecState, normalise
from sessionmgr_adapters.codex.failures import failure_of, stderr_failure_kind

LONG = "Input exceeds the maximum length of 1048576 characters."
CUT = "stream disconnected before completion: error sending request"

# Recorded with 0.169.0 (the fourth with 0.144.4): kind, retryable, resumable.
SAID = [
    ("Codex ran out of room in the model's context window. Start a new thread", "context", 0, 0),
    ("You\u2019ve hit your usage limit. Upgrade to Pro or try again at 5:46 PM.", "quota", 0, 1),
    ("Quota exceeded. Check your plan and billing details.", "quota", 0, 1),
    ("You've hit your usage limit. Upgrade to Pro", "quota", 0, 1),
    ("Selected model is at capacity. Please try a different model.", "overloaded", 1, 1),
    ("We\u2019re currently experiencing high demand, which may", "provider", 1, 1),
    ("exceeded retry limit, last status: 429 Too Many Requests", "rate", 1, 1),
    ("unexpected status 401 Unauthorized: no, url: http://x/v1/responses", "auth", 0, 1),
    ("unexpected status 404 Not Found: no, url: http://x/v1/responses", "provider", 0, 1),
    ("unexpected status 503 Service Unavailable: no", "overloaded", 1, 1),
    (CUT, "provider", 1, 1),
    ("Connection failed: error sending request", "provider", 1, 1),
    ("Incomplete response returned, reason: max_output_tokens", "provider", 0, 1),
    ("Missing environment variable: `KEY`.", "provider", 0, 1),
    ("the server's words: unexpected status 429", "provider", 0, 1),
    ("", "provider", 0, 1),
]
KINDS = {
    "context": Kind.CONTEXT_EXCEEDED,
    "quota": Kind.QUOTA_EXHAUSTED,
    "overloaded": Kind.OVERLOADED,
    "provider": Kind.PROVIDER_ERROR,
    "rate": Kind.RATE_LIMITED,
    "auth": Kind.AUTH_FAILED,
}


def turn_failure(message: str, *, before: str = "") -> Failure:
    earlier = turn_error(before).codex_error_info if before else None
    error = turn_error(message)
    return failure_of(error.codex_error_info, error.message, before=earlier)


@pytest.mark.parametrize(("message", "kind", "retryable", "resumable"), SAID)
def test_each_complaint_that_was_recorded_has_its_kind(
    message: str, kind: str, retryable: int, resumable: int
) -> None:
    failure = turn_failure(message)
    assert failure.kind is KINDS[kind]
    assert (failure.retryable, failure.resumable) == (bool(retryable), bool(resumable))


def test_words_that_are_not_known_are_judged_by_what_was_tried_again_before() -> None:
    assert turn_failure("gone", before=CUT).retryable
    assert not turn_failure("gone", before="rate limit exceeded: slow down").retryable


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("unexpected status 401 Unauthorized: no, url: http://x/v1/r", None),
        ("unexpected status 401 Unauthorized: no, url: http://x/v1/r, request id: abc-1", None),
        ('{"error":{"message":"bad words","type":"t","code":"c"}}', "bad words"),
        ('{"error":"bad words"}', '{"error":"bad words"}'),
        ("{broken", "{broken"),
        ("no rollout found for thread id x (code -32600)\n", "no rollout found for thread id x"),
        (
            "Reading additional input from stdin...\nError: thread/resume: thread/resume failed: x",
            "thread/resume failed: x",
        ),
        (
            f'Error: turn/start: turn/start failed: {LONG} (code -32602), data: {{"max_chars":1}}',
            f"turn/start failed: {LONG}",
        ),
        ("bad /home/joe/.codex/auth.json", "bad auth.json"),
        ("Reading prompt from stdin...\nNo prompt provided.", "No prompt provided."),
    ],
)
def test_a_complaint_is_shown_without_what_is_for_machines(message: str, shown: str | None) -> None:
    assert clean_message(message) == (shown or "unexpected status 401 Unauthorized: no")


def test_an_attempt_is_told_with_its_number_and_its_reason() -> None:
    [retry] = normalise(parse_error(f"Reconnecting... 2/5 ({CUT})"), ExecState())
    assert isinstance(retry, RetryScheduled)
    assert retry.failure is not None
    assert (retry.attempt, retry.failure.message, retry.failure.retryable) == (2, CUT, True)
    down = parse_error("Reconnecting... waiting for network")
    assert down.will_retry
    assert down.error.message == "Reconnecting... waiting for network"
    assert not parse_error("It is over").will_retry


@pytest.mark.parametrize(
    ("stderr", "kind"),
    [
        ("Error: thread/resume failed: no rollout found for thread id x", Kind.SESSION_NOT_FOUND),
        ("Error: thread x already has an active writer", Kind.SESSION_BUSY),
        ("Error loading config.toml: unknown variant `nix`", Kind.CONFIG_INVALID),
        ("Error: Model provider `nix` not found", Kind.CONFIG_INVALID),
        ("error: unexpected argument '--jsn' found", Kind.CONFIG_INVALID),
        (f"Error: turn/start failed: {LONG}", Kind.CONFIG_INVALID),
        ("Segmentation fault", None),
    ],
)
def test_a_start_that_came_to_nothing_says_why(stderr: str, kind: Kind | None) -> None:
    assert stderr_failure_kind(stderr) is kind
