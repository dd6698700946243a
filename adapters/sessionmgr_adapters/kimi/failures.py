"""Failures of a turn of Kimi: the only module that determines failure kinds. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sessionmgr.model import Failure, FailureKind
from sessionmgr_adapters.kimi.frames import fields_of

if TYPE_CHECKING:
    from sessionmgr.adapter.kit import RpcAnswer, RpcRefusal
    from sessionmgr.model import Json

PROVIDER_ERROR: Final = -32003
_BY_STATUS: Final = {
    401: FailureKind.AUTH_FAILED,
    402: FailureKind.BILLING,
    403: FailureKind.AUTH_FAILED,
    404: FailureKind.MODEL_NOT_FOUND,
    413: FailureKind.CONTEXT_EXCEEDED,
    429: FailureKind.RATE_LIMITED,
    503: FailureKind.OVERLOADED,
    529: FailureKind.OVERLOADED,
}
_BY_CODE: Final = {
    -32000: FailureKind.SESSION_BUSY,
    -32001: FailureKind.CONFIG_INVALID,  # no model is configured
    -32002: FailureKind.CAPABILITY_MISSING,  # the model does not take images
    -32004: FailureKind.AUTH_FAILED,
}
_WORDS: Final = {
    "quota": FailureKind.QUOTA_EXHAUSTED,
    "context_length": FailureKind.CONTEXT_EXCEEDED,
    "context length": FailureKind.CONTEXT_EXCEEDED,
}
_STATUS: Final = re.compile(r"Error code: (\d{3})\b")
_SERVERS_FAULT: Final = 500


def answer_failure(answer: RpcAnswer, *, has_output: bool) -> Failure | None:
    """Return the failure of the turn that an answer to the prompt ends; None if it succeeded."""
    if answer.refusal is not None:
        return refusal_failure(answer.refusal)
    status = fields_of(answer).get("status")
    kind, message = FailureKind.PROVIDER_ERROR, f"the turn ended with {status!r}"
    if status == "max_steps_reached":
        kind, message = FailureKind.BUDGET_EXCEEDED, "the turn reached its maximum number of steps"
    elif status == "finished":
        if has_output:
            return None
        message = "the turn finished without a text or a tool call"
    return Failure(
        kind=kind, message=message, resumable=True, provider_code=str(status), phase="turn"
    )


def refusal_failure(refusal: RpcRefusal, *, phase: str = "turn") -> Failure:
    """Return the failure for an error that Kimi answers."""
    code, message = refusal.code, refusal.message
    found = _STATUS.search(message) if code == PROVIDER_ERROR else None
    status = int(found[1]) if found else None
    by_words = next((kind for words, kind in _WORDS.items() if words in message.lower()), None)
    kind = by_words if code == PROVIDER_ERROR and by_words else _kind(code, status)
    is_transient = kind in {FailureKind.RATE_LIMITED, FailureKind.OVERLOADED}
    # Without a status, no answer has come from the model, or half of one.
    is_lost = code == PROVIDER_ERROR and (status is None or status >= _SERVERS_FAULT)
    return Failure(
        kind=kind,
        message=message or f"Kimi answered with the error {code}",
        retryable=is_transient or (is_lost and kind is FailureKind.PROVIDER_ERROR),
        resumable=kind is not FailureKind.CONTEXT_EXCEEDED,
        provider_code=str(status or code),
        phase=phase,
    )


def _kind(code: int, status: int | None) -> FailureKind:
    known = _BY_CODE.get(code) if status is None else _BY_STATUS.get(status)
    return known or FailureKind.PROVIDER_ERROR


def retry_failure(payload: dict[str, Json]) -> Failure:
    """Return the failure that caused the repetition of a step."""
    status = payload.get("status_code")
    return Failure(
        kind=_kind(PROVIDER_ERROR, status if isinstance(status, int) else None),
        message=f"the call of the model failed: {payload.get('error_type')} ({status})",
        retryable=True,
        resumable=True,
        phase="turn",
    )
