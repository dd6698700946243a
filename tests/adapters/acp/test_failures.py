"""Failures: what an agent's errors mean, and turns that only seem to succeed."""

from __future__ import annotations

import pytest

from sessionmgr.adapter.kit import BUSY
from sessionmgr.model import FailureKind, Json, Usage
from sessionmgr_adapters.acp.bundled_agents import BUNDLED
from sessionmgr_adapters.acp.failures import EMPTY_TURN, failure_of_refusal, failure_of_turn
from sessionmgr_adapters.acp.frames import AcpRefusal, PromptEnded
from sessionmgr_adapters.acp.state import AcpState, AcpTurn
from sessionmgr_adapters.acp.updates import StateUpdate

PROMPT = "session/prompt"
NO_LOGIN = FailureKind.AUTH_FAILED
CONTEXT, QUOTA = FailureKind.CONTEXT_EXCEEDED, FailureKind.QUOTA_EXHAUSTED
ERROR, GONE = FailureKind.PROVIDER_ERROR, FailureKind.SESSION_NOT_FOUND
CASES: list[tuple[str, int | None, str, Json, FailureKind, bool]] = [
    (PROMPT, 401, "no", None, FailureKind.AUTH_FAILED, False),
    (PROMPT, -32603, "add more credits", None, FailureKind.BILLING, False),
    (PROMPT, 403, "no", None, FailureKind.AUTH_FAILED, False),
    (PROMPT, 402, "no", None, FailureKind.BILLING, False),
    (PROMPT, 429, "slow down", None, FailureKind.RATE_LIMITED, True),
    (PROMPT, 429, "You exceeded your current quota", None, FailureKind.QUOTA_EXHAUSTED, False),
    (PROMPT, 429, "You have exhausted your daily quota", None, FailureKind.QUOTA_EXHAUSTED, False),
    (PROMPT, 400, "maximum context length exceeded", None, FailureKind.CONTEXT_EXCEEDED, False),
    (PROMPT, 400, "bad image", None, FailureKind.PROVIDER_ERROR, False),
    (PROMPT, 404, "model x not found", None, FailureKind.MODEL_NOT_FOUND, False),
    (PROMPT, 500, "terminated", None, FailureKind.PROVIDER_ERROR, True),
    (PROMPT, 503, "busy", None, FailureKind.OVERLOADED, True),
    (PROMPT, 529, "busy", None, FailureKind.OVERLOADED, True),
    (PROMPT, -32000, "Authentication required", None, FailureKind.AUTH_FAILED, False),
    (PROMPT, -32600, "no", {"code": "turn.agent_busy"}, FailureKind.SESSION_BUSY, True),
    (PROMPT, -32603, "bad key", None, FailureKind.AUTH_FAILED, False),
    (PROMPT, -32603, "Internal error", None, FailureKind.PROVIDER_ERROR, False),
    (PROMPT, -32603, "Internal error", "fetch failed", FailureKind.PROVIDER_ERROR, True),
    (PROMPT, -32603, "The connection was closed unexpectedly", None, ERROR, True),
    (PROMPT, -32603, "x", {"details": "401 no"}, FailureKind.AUTH_FAILED, False),
    (PROMPT, -32603, "x", {"error": "Rate limit reached"}, FailureKind.RATE_LIMITED, True),
    (PROMPT, -32603, "x", {"errorKind": "rate_limit"}, FailureKind.RATE_LIMITED, True),
    (PROMPT, -32603, "x", {"errorKind": "transport_lost"}, FailureKind.PROVIDER_ERROR, True),
    (PROMPT, -32603, "x", {"errorKind": "billing_error"}, FailureKind.BILLING, False),
    (PROMPT, -32603, "x", {"errorName": "ContextOverflowError"}, CONTEXT, False),
    (PROMPT, -32603, "x", {"codex_error_info": "usage_limit_exceeded"}, QUOTA, False),
    (PROMPT, -32603, "x", {"codexErrorInfo": {"httpConnectionFailed": {}}}, ERROR, True),
    (PROMPT, BUSY, "the write buffer is full", None, FailureKind.OVERLOADED, True),
    (PROMPT, None, "unknown form", None, FailureKind.PROTOCOL_ERROR, False),
    (PROMPT, 0, "Missing environment variable: `MODEL_KEY`.", None, FailureKind.AUTH_FAILED, False),
    (PROMPT, -32603, "Missing MODEL_API_KEY environment variable", None, NO_LOGIN, False),
    (PROMPT, -32603, "x", {"details": "The API key of the model is not set."}, NO_LOGIN, False),
    (PROMPT, -32603, "x", {"details": "llm.AuthenticationError: no"}, NO_LOGIN, False),
    (PROMPT, -32603, "x", "ServiceUnavailableError: no", FailureKind.OVERLOADED, True),
    (PROMPT, -32603, "x", "ContextWindowExceededError: no", CONTEXT, False),
    (PROMPT, -32603, "x", "InternalServerError: no", ERROR, True),
    (PROMPT, -32603, "x", "APIConnectionError: no", ERROR, True),
    (PROMPT, -32603, "missing primary_key", None, FailureKind.PROVIDER_ERROR, False),
    ("session/new", -32603, "Configuration value not found: A_KEY", None, NO_LOGIN, False),
    ("session/load", -32602, "Invalid params", None, FailureKind.SESSION_NOT_FOUND, False),
    ("session/resume", -32002, "no", None, FailureKind.SESSION_NOT_FOUND, False),
    ("session/load", -32603, "x", {"details": 'Invalid session identifier "x"'}, GONE, False),
    ("session/resume", -32601, "Method not found", None, FailureKind.CAPABILITY_MISSING, False),
    ("session/load", -32603, "No previous sessions found for this project.", None, GONE, False),
    ("session/resume", -32603, "x", {"details": "no rollout found for thread id 1"}, GONE, False),
    (PROMPT, -32603, "x", "Network error: Stream decode error", ERROR, True),
    (PROMPT, -32603, "x", "error reading a body: unexpected EOF", ERROR, True),
    ("session/set_mode", -32602, "Unknown mode", None, FailureKind.CONFIG_INVALID, False),
    ("session/new", -32000, "log in", None, FailureKind.AUTH_FAILED, False),
]


@pytest.mark.parametrize(
    ("method", "code", "message", "data", "kind", "retryable"),
    CASES,
    ids=[f"{case[0][8:]}{case[1]}-{case[4]}-{number}" for number, case in enumerate(CASES)],
)
def test_an_error_has_a_kind(
    method: str, code: int | None, message: str, data: Json, kind: FailureKind, retryable: bool
) -> None:
    refusal = AcpRefusal(method=method, code=code, message=message, data=data)
    failure = failure_of_refusal(refusal)
    assert (failure.kind, failure.retryable) == (kind, retryable)
    assert message in failure.message
    assert not failure.resumable


def test_a_failure_names_the_request_and_each_text_once() -> None:
    refusal = AcpRefusal(method="session/new", code=-32603, message="x", data={"details": "x"})
    assert failure_of_refusal(refusal).message == "the agent refused session/new: x"
    nothing = AcpRefusal(method=PROMPT, code=-32603, message=" ")
    assert failure_of_refusal(nothing, "turn").message == "the turn failed: no reason given"
    assert failure_of_refusal(nothing, "turn").resumable


# --- turns ---------------------------------------------------------------------------------------


def turn(**given: object) -> AcpState:
    state = AcpState()
    state.turn = AcpTurn(**given)  # type: ignore[arg-type]  # as the tests say
    return state


def ended(reason: str) -> PromptEnded:
    return PromptEnded(stop_reason=reason)


@pytest.mark.parametrize(
    "state",
    [turn(has_text=True), turn(has_tools=True), turn(usage=Usage(output=1))],
    ids=["text", "tool", "usage"],
)
def test_a_turn_with_a_sign_of_work_succeeds(state: AcpState) -> None:
    assert failure_of_turn(ended("end_turn"), state) is None
    assert failure_of_turn(StateUpdate(state="idle"), state) is None


def test_an_end_without_any_sign_of_work_is_a_failure() -> None:
    failure = failure_of_turn(ended("end_turn"), AcpState())
    assert failure is not None
    assert (failure.kind, failure.message) == (FailureKind.PROVIDER_ERROR, EMPTY_TURN)
    assert failure.resumable
    assert not failure.retryable


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("refusal", FailureKind.REFUSED),
        ("max_tokens", FailureKind.PROVIDER_ERROR),
        ("max_turn_requests", FailureKind.BUDGET_EXCEEDED),
        ("cancelled", FailureKind.PROVIDER_ERROR),
        ("of_tomorrow", FailureKind.PROVIDER_ERROR),
    ],
)
def test_only_the_end_of_a_turn_is_a_success(reason: str, kind: FailureKind) -> None:
    failure = failure_of_turn(ended(reason), turn(has_text=True))
    assert failure is not None
    assert (failure.kind, failure.provider_code) == (kind, reason)


def test_a_refusal_names_what_the_agent_said_last() -> None:
    said = turn(has_text=True, text="The call of the model failed: " + "x" * 1000)
    failure = failure_of_turn(ended("refusal"), said)
    assert failure is not None
    assert failure.kind is FailureKind.REFUSED
    assert failure.message.startswith(
        "the model refused the request: The call of the model failed: xxx"
    )
    assert len(failure.message) < 600
    assert failure.message.endswith("…")


@pytest.mark.parametrize(
    ("text", "kind", "retryable"),
    [
        ("The call failed: Error code: 401 - {}", FailureKind.AUTH_FAILED, False),
        ("failed for model 'm' (status=429): x", FailureKind.RATE_LIMITED, True),
        ("Request failed with status code 500", FailureKind.PROVIDER_ERROR, True),
        ("I will not write about rate limits.", FailureKind.REFUSED, False),
        ("Error 429 is a code that I will not explain.", FailureKind.REFUSED, False),
    ],
)
def test_a_refusal_that_names_a_status_is_an_error_of_the_server(
    text: str, kind: FailureKind, retryable: bool
) -> None:
    failure = failure_of_turn(ended("refusal"), turn(has_text=True, text=text))
    assert failure is not None
    assert (failure.kind, failure.retryable) == (kind, retryable)
    assert text in failure.message
    assert failure.resumable


def test_the_error_of_a_state_is_that_of_the_turn() -> None:
    error: Json = {"code": -32603, "message": "Rate limit reached"}
    end = StateUpdate(state="idle", stop_reason="error", error=error)
    failure = failure_of_turn(end, turn(has_text=True))
    assert failure is not None
    assert (failure.kind, failure.retryable) == (FailureKind.RATE_LIMITED, True)
    unsaid = failure_of_turn(StateUpdate(state="idle", stop_reason="error"), AcpState())
    assert unsaid is not None
    assert unsaid.kind is FailureKind.PROVIDER_ERROR


def test_a_message_may_report_the_failure() -> None:
    said = turn(has_text=True, text="Ran into this error: Rate limit exceeded.")
    failure = failure_of_turn(ended("end_turn"), said, "^Ran into this error: ")
    assert failure is not None
    assert failure.kind is FailureKind.RATE_LIMITED
    assert failure.message == "the turn failed: Ran into this error: Rate limit exceeded."
    assert failure_of_turn(ended("end_turn"), said) is None
    said.turn.usage = Usage(output=5)  # of an earlier call
    assert failure_of_turn(ended("end_turn"), said, "^Ran into this error: ") is not None
    assert failure_of_turn(ended("end_turn"), said, "^Another error: ") is None


ADVICE = "Please retry if you think this is a transient or recoverable error."
AGAIN = "Please resend your message to try again."
GOOSE = [
    (f"Ran into this error: Rate limit exceeded: slow.\n\n{ADVICE}", FailureKind.RATE_LIMITED),
    (f"Ran into this error: Server error: a\nb.\n\n{ADVICE}", FailureKind.PROVIDER_ERROR),
    (f"Network error: Stream decode error: x\n\n{AGAIN}", FailureKind.PROVIDER_ERROR),
    (
        "The model returned an empty response. Please resend your message to continue.",
        FailureKind.PROVIDER_ERROR,
    ),
    ("Ran into this error: it is mended now.", None),
    (f"It says: Ran into this error: x.\n\n{ADVICE}", None),
]


@pytest.mark.parametrize(("text", "kind"), GOOSE)
def test_goose_reports_failures_as_text(text: str, kind: FailureKind | None) -> None:
    state = turn(has_text=True, text=text, usage=Usage(output=5))
    failure = failure_of_turn(ended("end_turn"), state, BUNDLED["goose"].error_text)
    assert (failure and failure.kind) == kind


def test_a_reported_error_needs_no_certain_words() -> None:
    said = turn(has_text=True, text="We cannot do this.", has_error=True)
    failure = failure_of_turn(ended("end_turn"), said)
    assert failure is not None
    assert failure.message == "the turn failed: We cannot do this."


def test_a_refused_prompt_is_a_failed_turn() -> None:
    refusal = AcpRefusal(method=PROMPT, code=401, message="bad key")
    failure = failure_of_turn(refusal, AcpState())
    assert failure is not None
    assert (failure.kind, failure.phase) == (FailureKind.AUTH_FAILED, "turn")
