"""Failures of a turn, and their kinds."""

from __future__ import annotations

import pytest

from sessionmgr.model import (
    Failure,
    FailureKind,
    Json,
)
from sessionmgr_adapters.claude.failures import failure_of, retry_failure, stderr_failure_kind
from sessionmgr_adapters.claude.frames import (
    AssistantFrame,
    ClaudeMessage,
    ResultFrame,
    SystemFrame,
)


def failed(**fields: object) -> Failure:
    said = {name: fields.pop(name) for name in ("error", "params") if name in fields}
    error = AssistantFrame(
        message=ClaudeMessage(content=""),
        error=said.get("error"),  # type: ignore[arg-type]
        api_error_params=said.get("params"),  # type: ignore[arg-type]
    )
    failure = failure_of(ResultFrame(subtype="success", is_error=True, **fields), error)  # type: ignore[arg-type]
    assert failure is not None
    return failure


def test_a_quota_without_an_end_is_no_rate_limit() -> None:
    spent = {"error": "rate_limit", "api_error": "usage_limit_reached"}
    assert failed(**spent).kind is FailureKind.QUOTA_EXHAUSTED
    limit: Json = {"rate_limit_info": {"resetsAt": 0}}
    limited = failed(**spent, params=limit)
    assert (limited.kind, limited.retry_at) == (
        FailureKind.RATE_LIMITED,
        "1970-01-01T00:00:00.000Z",
    )


def test_an_error_without_a_status_is_worth_another_try() -> None:
    assert failed(error="unknown", api_error="connection_failed").retryable
    assert failed(error="server_error").retryable
    assert not failed(error="unknown", api_error_status=400).retryable
    assert failed(api_error_status=402).kind is FailureKind.BILLING
    assert failed(terminal_reason="blocking_limit").kind is FailureKind.CONTEXT_EXCEEDED
    assert failed(result=None, terminal_reason="hook_stopped").message.endswith("hook_stopped")


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Error: Session ID x is already in use.", FailureKind.SESSION_BUSY),
        ("cannot be used with root/sudo privileges", FailureKind.PERMISSION_REFUSED),
        ("error: unknown option '--x'", FailureKind.CONFIG_INVALID),
        ("Segmentation fault", None),
    ],
)
def test_last_words_say_why_a_start_came_to_nothing(words: str, kind: FailureKind | None) -> None:
    assert stderr_failure_kind(words) is kind


@pytest.mark.parametrize(
    ("status", "error", "kind", "message"),
    [
        (429, None, FailureKind.RATE_LIMITED, "the API gave status 429 (unknown)"),
        (529, "rate_limit", FailureKind.OVERLOADED, "the API gave status 529 (rate_limit)"),
        (None, "overloaded", FailureKind.OVERLOADED, "the API gave no answer (overloaded)"),
        (500, "server_error", FailureKind.PROVIDER_ERROR, "the API gave status 500 (server_error)"),
    ],
)
def test_a_retry_says_what_it_is_made_for(
    status: int | None, error: str | None, kind: FailureKind, message: str
) -> None:
    failure = retry_failure(SystemFrame(subtype="api_retry", error_status=status, error=error))
    assert (failure.kind, failure.message, failure.provider_code) == (kind, message, error)
    assert failure.retryable
