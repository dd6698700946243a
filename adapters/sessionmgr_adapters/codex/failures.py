"""The classification of Codex's errors: the only module that assigns kinds of failure to them.

Pure. The class of an error decides, and the HTTP status of the model's server, which Codex passes
on; the server's message decides nothing. The class `other` carries no information and stays
unclassified, except that a connection may have been lost just before.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from sessionmgr.adapter.kit import BUSY
from sessionmgr.model import ErrorOccurred, Failure, FailureKind, format_optional_timestamp
from sessionmgr.process import StderrTail

if TYPE_CHECKING:
    from sessionmgr.adapter.kit import RpcAnswer, RpcRefusal
    from sessionmgr.model import Json
    from sessionmgr_adapters.codex.frames import CodexTurn
    from sessionmgr_adapters.codex.state import CodexState

_QUOTED: Final = re.compile(r"""(["'`])~?/[^"'`\n]*/(?=[^"'`/\n]+\1)""")
# The lookarounds exclude URLs, and two words joined by a slash.
_PLAIN: Final = re.compile(r"""(?<![\w:/.\]])(?:file://|~)?(?:/[^\s/"'`:,;]+)+/(?=[^\s/"'`:,;])""")


def strip_directories(text: str) -> str:
    """Return a text in which files have their names, without their directories."""
    return _PLAIN.sub("", _QUOTED.sub(r"\1", text))


def without_directories(failure: Failure) -> Failure:
    """Return a failure whose message contains no directories."""
    tail = failure.stderr_tail
    return replace(
        failure,
        message=strip_directories(failure.message),
        stderr_tail=None if tail is None else strip_directories(tail),
    )


_BY_CLASS: Final = {
    "contextWindowExceeded": FailureKind.CONTEXT_EXCEEDED,
    "sessionBudgetExceeded": FailureKind.BUDGET_EXCEEDED,
    "usageLimitExceeded": FailureKind.QUOTA_EXHAUSTED,
    "rateLimitExceeded": FailureKind.RATE_LIMITED,
    "flexUnavailable": FailureKind.OVERLOADED,
    "serverOverloaded": FailureKind.OVERLOADED,
    "policyCapacityUnavailable": FailureKind.OVERLOADED,
    "modelNotFound": FailureKind.MODEL_NOT_FOUND,
    "cyberPolicy": FailureKind.REFUSED,
    "misalignmentPolicyViolation": FailureKind.REFUSED,
    "inferenceHookDenied": FailureKind.REFUSED,
    "tooManyDenials": FailureKind.PERMISSION_REFUSED,
    "unauthorized": FailureKind.AUTH_FAILED,
    "activeTurnNotSteerable": FailureKind.SESSION_BUSY,
}
_BY_STATUS: Final = {
    401: FailureKind.AUTH_FAILED,
    402: FailureKind.BILLING,
    403: FailureKind.AUTH_FAILED,
    429: FailureKind.RATE_LIMITED,
    503: FailureKind.OVERLOADED,
    529: FailureKind.OVERLOADED,
}
_CONNECTION_ERRORS: Final = {
    "httpConnectionFailed",
    "responseStreamConnectionFailed",
    "responseStreamDisconnected",
    "responseTooManyFailedAttempts",
}
"""Classes about the connection to the server; without a status, the server did not answer."""
_TRANSIENT: Final = {FailureKind.RATE_LIMITED, FailureKind.OVERLOADED, FailureKind.SESSION_BUSY}
_USAGE_LIMIT: Final = "usageLimitExceeded"
_SERVERS_FAULT: Final = 500
_STATUS: Final = "httpStatusCode"

# Codex's own texts: in an answer whose code does not tell the kind, and on the stderr of a
# `codex exec` that started no turn.
_STDERR_PATTERNS: Final = (
    ("no rollout found", FailureKind.SESSION_NOT_FOUND),
    ("no thread found", FailureKind.SESSION_NOT_FOUND),
    ("thread not found", FailureKind.SESSION_NOT_FOUND),
    ("invalid thread id", FailureKind.SESSION_NOT_FOUND),
    ("already has an active writer", FailureKind.SESSION_BUSY),
    ("authentication required", FailureKind.AUTH_FAILED),
    ("invalid configuration", FailureKind.CONFIG_INVALID),
    ("failed to read configuration layers", FailureKind.CONFIG_INVALID),
    ("error loading config.toml", FailureKind.CONFIG_INVALID),
    ("error finding codex home", FailureKind.CONFIG_INVALID),
    ("output schema file", FailureKind.CONFIG_INVALID),
    ("model provider `", FailureKind.CONFIG_INVALID),
    ("no prompt provided", FailureKind.CONFIG_INVALID),
    ("input exceeds the maximum length", FailureKind.CONFIG_INVALID),
    ("error: unexpected argument", FailureKind.CONFIG_INVALID),
    ("error: invalid value", FailureKind.CONFIG_INVALID),
)
_IRRELEVANT_STDERR: Final = re.compile(
    r"^.*Codex could not find bubblewrap on PATH.*$\n?", re.MULTILINE
)
_NOT_UNDERSTOOD: Final = {-32600, -32601, -32602, -32700}


def failure_of(
    info: Json, message: str, *, before: Json = None, resets_at: float | None = None
) -> Failure:
    """Return the failure of a turn.

    Args:
        info: Its `codexErrorInfo`.
        message: Its message.
        before: The `codexErrorInfo` of the turn's last error that Codex retried.
        resets_at: When the exhausted limit resets, if Codex reported that.
    """
    name, status = _error_class(info)
    kind = _BY_CLASS.get(name) or _BY_STATUS.get(status or 0, FailureKind.PROVIDER_ERROR)
    if name == _USAGE_LIMIT and resets_at is not None:
        kind = FailureKind.RATE_LIMITED
    broke_off = name in _CONNECTION_ERRORS and status is None
    if name == "other":
        earlier, earlier_status = _error_class(before)
        broke_off = earlier in _CONNECTION_ERRORS and earlier_status is None
    at = resets_at if kind is FailureKind.RATE_LIMITED else None
    return Failure(
        kind=kind,
        message=strip_directories(message) or f"the turn failed with {name}",
        retryable=kind in _TRANSIENT
        or broke_off
        or name == "internalServerError"
        or (status or 0) >= _SERVERS_FAULT,
        resumable=kind is not FailureKind.CONTEXT_EXCEEDED,
        retry_at=format_optional_timestamp(at),
        provider_code=name if status is None else f"{name}:{status}",
        phase="turn",
    )


def retry_failure(info: Json, message: str) -> Failure:
    """Return the failure for which Codex retries."""
    return replace(failure_of(info, message), retryable=True, resumable=True)


def call_failure(answer: RpcAnswer, kind: FailureKind | None = None) -> Failure:
    """Return the failure for a refused call."""
    assert answer.refusal is not None
    failure = request_failure(answer.method, answer.refusal.code, answer.refusal.message)
    return failure if kind is None else replace(failure, kind=kind)


def stderr_failure_kind(complaint: str) -> FailureKind | None:
    """Return the kind of an error on stderr, if its text is known."""
    text = complaint.lower()
    return next((kind for words, kind in _STDERR_PATTERNS if words in text), None)


def request_failure(method: str, code: int, message: str) -> Failure:
    """Return the failure for a request that Codex answered with an error."""
    kind = stderr_failure_kind(message)
    if kind is None and code == BUSY:
        kind = FailureKind.OVERLOADED
    elif kind is None:
        is_ours = code in _NOT_UNDERSTOOD
        kind = FailureKind.CONFIG_INVALID if is_ours else FailureKind.PROVIDER_ERROR
    return Failure(
        kind=kind,
        message=f"Codex refused {method}: {message or 'no reason given'}",
        retryable=kind in _TRANSIENT,
        resumable=kind in _TRANSIENT,
        provider_code=str(code),
        phase="start",
    )


def stderr_tail_message(tail: StderrTail) -> StderrTail:
    """Return the end of stderr, without the warnings that Codex always prints."""
    words = StderrTail()
    words.feed(_IRRELEVANT_STDERR.sub("", tail.text()).encode())
    return words


def failure_of_end(turn: CodexTurn, state: CodexState) -> Failure | None:
    """Return the failure with which a turn ended, if any."""
    if turn.status == "completed":
        return None
    if turn.error is None:
        message = f"the turn was {turn.status}"
        return Failure(
            kind=FailureKind.PROVIDER_ERROR, message=message, resumable=True, phase="turn"
        )
    return failure_of(
        turn.error.codex_error_info,
        turn.error.message,
        before=state.retried,
        resets_at=state.resets_at,
    )


def unreadable_reply_failure(method: str) -> Failure:
    """Return the failure for an answer of unknown form."""
    return Failure(
        kind=FailureKind.PROTOCOL_ERROR,
        message=f"the answer to {method} has an unknown form",
        phase="start",
    )


def _error_class(info: Json) -> tuple[str, int | None]:
    """Return the class of an error, and the HTTP status if it has one."""
    match info:
        case str() if info:
            return info, None
        case dict() if len(info) == 1:
            [(name, details)] = info.items()
            status = details.get(_STATUS) if isinstance(details, dict) else None
            return name, status if isinstance(status, int) else None
        case _:
            return "other", None


# --- start retries -------------------------------------------------------------------------------

# The first process that runs creates Codex's databases, and some versions fail while another
# process is creating them: at the start of the process, or of a thread. No prompt has been sent
# then, and the next start finds the databases complete.
MAX_STARTS: Final = 5
_START_RACE_MESSAGES: Final = (
    ("failed to initialize", "state runtime"),
    ("failed to migrate", "DB"),
    ("database is locked",),
    ("thread history projection", "is behind"),
)
_TRANSIENT_MESSAGES: Final = ("is closing", "already has an active writer")


def is_home_unfinished(complaint: str) -> bool:
    """Whether stderr reports a home that another process is still creating."""
    return any(all(each in complaint for each in words) for words in _START_RACE_MESSAGES)


def is_transient_refusal(refusal: RpcRefusal) -> bool:
    """Whether a call was refused only temporarily."""
    if refusal.code == BUSY or is_home_unfinished(refusal.message):
        return True
    return any(each in refusal.message for each in _TRANSIENT_MESSAGES)


def lost_start_race(stderr: str, tries: int) -> bool:
    """Whether a process failed because its home was incomplete, and may be started again."""
    return tries < MAX_STARTS and is_home_unfinished(stderr)


def retry_delay(tries: int) -> float:
    """Return the delay in seconds before the next start, for other processes to finish."""
    return 0.1 * 2.0 ** (tries - 1)


def start_retry_event(tries: int) -> ErrorOccurred:
    """Return the event that reports a repeated start."""
    message = f"Codex found its home incomplete and is started again ({tries}/{MAX_STARTS - 1})"
    failure = Failure(kind=FailureKind.START_FAILED, message=message, retryable=True, phase="start")
    return ErrorOccurred(failure=failure, severity="warning")
