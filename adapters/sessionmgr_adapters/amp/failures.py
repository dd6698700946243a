"""Failures of Amp: the only module that determines failure kinds. Pure.

Amp reports errors as texts alone. They are its program's own, never the model's: a title of a fixed
set, and a description.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from sessionmgr.model import Failure, FailureKind

if TYPE_CHECKING:
    from sessionmgr_adapters.amp.frames import AmpResult

_NEEDS_APPROVAL: Final = "require user approval"
_ALLOW: Final = (
    'allow it by a rule in the option permissions, such as {"tool": "NAME", "action": "allow"}, or '
    "in the setting amp.permissions, or use the permission mode full_auto"
)
_TITLES: Final = (
    ("Unauthorized", FailureKind.AUTH_FAILED),
    ("Low Credit Balance", FailureKind.BILLING),
    ("Out of Credits", FailureKind.BILLING),
    ("Usage Quota Exceeded", FailureKind.QUOTA_EXHAUSTED),
    ("Rate Limit Hit", FailureKind.RATE_LIMITED),
    ("Model Provider Overloaded", FailureKind.OVERLOADED),
    ("Model Not Found", FailureKind.MODEL_NOT_FOUND),
    ("Context Limit Reached", FailureKind.CONTEXT_EXCEEDED),
    ("Model Refused", FailureKind.REFUSED),
    ("OpenAI Safety Check", FailureKind.REFUSED),
    ("Agent Mode Disabled", FailureKind.CONFIG_INVALID),
)
"""The beginnings of errors in a result."""
_RETRYABLE: Final = ("Rate Limit Hit", "Model Provider Overloaded", "Model Stream", "Network Error")
_UNRESUMABLE: Final = {FailureKind.CONTEXT_EXCEEDED, FailureKind.REFUSED}
_STDERR: Final = (
    ("erun with --dangerously-allow-all", FailureKind.PERMISSION_REFUSED),
    ("Invalid thread URL or ID", FailureKind.SESSION_NOT_FOUND),
    ("Thread not found", FailureKind.SESSION_NOT_FOUND),
    ("archived and cannot be continued", FailureKind.SESSION_NOT_FOUND),
    ("already open and active", FailureKind.SESSION_BUSY),
    ("already running in an orb", FailureKind.SESSION_BUSY),
    ("unknown option", FailureKind.CONFIG_INVALID),
    ("Invalid JSON in settings file", FailureKind.CONFIG_INVALID),
    ("Cannot reach Amp servers", FailureKind.PROVIDER_ERROR),
    ("Couldn't connect to the Amp server", FailureKind.PROVIDER_ERROR),
    ("amp login", FailureKind.AUTH_FAILED),
)
"""What a process that ends without a result writes to stderr."""


def result_failure(result: AmpResult) -> Failure | None:
    """Return the failure that a result reports; None if the turn has succeeded."""
    if not result.is_failure:
        return None
    code = result.subtype if isinstance(result.subtype, str) else None
    error = result.error if isinstance(result.error, str) else result.result
    text = error if isinstance(error, str) and error else f"the turn ended with {code!r}"
    kind = next((kind for title, kind in _TITLES if text.startswith(title)), None)
    if _NEEDS_APPROVAL in text:
        kind, text = FailureKind.PERMISSION_REFUSED, f"{text}; {_ALLOW}"
    elif kind is None:
        is_spent = code == "error_max_turns"
        kind = FailureKind.BUDGET_EXCEEDED if is_spent else FailureKind.PROVIDER_ERROR
    return Failure(
        kind=kind,
        message=text,
        retryable=text.startswith(_RETRYABLE),
        resumable=kind not in _UNRESUMABLE,
        provider_code=code,
        phase="turn",
    )


def exit_failure_of(failure: Failure, stderr: str) -> Failure:
    """Return the failure of a process that ended without a result, by what it wrote to stderr."""
    kind = next((kind for words, kind in _STDERR if words in stderr), None)
    if kind is None:
        return failure
    is_denied = kind is FailureKind.PERMISSION_REFUSED
    message = f"{failure.message}; {_ALLOW}" if is_denied else failure.message
    is_retryable = kind is FailureKind.PROVIDER_ERROR
    return replace(failure, kind=kind, message=message, retryable=is_retryable, resumable=is_denied)
