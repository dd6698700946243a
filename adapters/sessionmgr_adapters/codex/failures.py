"""What it means that something of Codex's went wrong: the one place where kinds are given.

Pure. What counts is the class of an error and the status of the model's server, which Codex hands
on; what a server said in words decides nothing. `other` is a class that says nothing, and stays
one: all that is added to it is whether the turn broke off just before.
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
# Not within an address, nor of two words with a stroke between them.
_PLAIN: Final = re.compile(r"""(?<![\w:/.\]])(?:file://|~)?(?:/[^\s/"'`:,;]+)+/(?=[^\s/"'`:,;])""")


def strip_directories(text: str) -> str:
    """Return a text in which files have their names, and not where they are."""
    return _PLAIN.sub("", _QUOTED.sub(r"\1", text))


def without_directories(failure: Failure) -> Failure:
    """Return a failure that says nothing of where files are."""
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
"""Classes that are about the way to the server; without a status no answer has come over it."""
_TRANSIENT: Final = {FailureKind.RATE_LIMITED, FailureKind.OVERLOADED, FailureKind.SESSION_BUSY}
_USAGE_LIMIT: Final = "usageLimitExceeded"
_SERVERS_FAULT: Final = 500
_STATUS: Final = "httpStatusCode"

# What an answer to a request says where its code does not tell, and `codex exec` on stderr where
# no turn has come of it. These are Codex's own words.
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
    """Return what went wrong in a turn.

    `info` is its `codexErrorInfo`, `before` that of the turn's last error that was tried again,
    and `resets_at` when the limit that is hit begins anew, if that was told.
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
    """Return what Codex tries again for."""
    return replace(failure_of(info, message), retryable=True, resumable=True)


def call_failure(answer: RpcAnswer, kind: FailureKind | None = None) -> Failure:
    """Return the failure that it is that a call was refused."""
    assert answer.refusal is not None
    failure = request_failure(answer.method, answer.refusal.code, answer.refusal.message)
    return failure if kind is None else replace(failure, kind=kind)


def stderr_failure_kind(complaint: str) -> FailureKind | None:
    """Return the kind of what Codex complains of in words that are known."""
    said = complaint.lower()
    return next((kind for words, kind in _STDERR_PATTERNS if words in said), None)


def request_failure(method: str, code: int, message: str) -> Failure:
    """Return what it means that Codex answers a request with an error."""
    kind = stderr_failure_kind(message)
    if kind is None and code == BUSY:
        kind = FailureKind.OVERLOADED
    elif kind is None:
        is_ours = code in _NOT_UNDERSTOOD
        kind = FailureKind.CONFIG_INVALID if is_ours else FailureKind.PROVIDER_ERROR
    return Failure(
        kind=kind,
        message=f"Codex refused {method}: {message or 'without a reason'}",
        retryable=kind in _TRANSIENT,
        resumable=kind in _TRANSIENT,
        provider_code=str(code),
        phase="start",
    )


def stderr_tail_message(said: StderrTail) -> StderrTail:
    """Return what it complained last, without what it always complains of."""
    words = StderrTail()
    words.feed(_IRRELEVANT_STDERR.sub("", said.text()).encode())
    return words


def failure_of_end(turn: CodexTurn, state: CodexState) -> Failure | None:
    """Return the failure that the end of a turn is, if it is one."""
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
    """Return what it is that Codex answers a request in a shape that nobody knows."""
    return Failure(
        kind=FailureKind.PROTOCOL_ERROR,
        message=f"the answer to {method} is of a shape that nobody knows",
        phase="start",
    )


def _error_class(info: Json) -> tuple[str, int | None]:
    """Return the class of an error, and the server's status if it tells one."""
    match info:
        case str() if info:
            return info, None
        case dict() if len(info) == 1:
            [(name, told)] = info.items()
            status = told.get(_STATUS) if isinstance(told, dict) else None
            return name, status if isinstance(status, int) else None
        case _:
            return "other", None


# --- starts that are tried again -----------------------------------------------------------------

# Codex's databases are made by whoever is there first, and some versions give up when somebody else
# is at it: as a whole, or on a thread that is begun or gone on with. Nothing has been asked then,
# and the next start finds all of it made.
MAX_STARTS: Final = 5
_START_RACE_MESSAGES: Final = (
    ("failed to initialize", "state runtime"),
    ("failed to migrate", "DB"),
    ("database is locked",),
    ("thread history projection", "is behind"),
)
_TRANSIENT_MESSAGES: Final = ("is closing", "already has an active writer")


def is_home_unfinished(complaint: str) -> bool:
    """Whether Codex complains of a home that somebody else is making."""
    return any(all(each in complaint for each in words) for words in _START_RACE_MESSAGES)


def is_transient_refusal(refusal: RpcRefusal) -> bool:
    """Whether a call was refused only for the moment."""
    if refusal.code == BUSY or is_home_unfinished(refusal.message):
        return True
    return any(each in refusal.message for each in _TRANSIENT_MESSAGES)


def lost_start_race(stderr: str, tries: int) -> bool:
    """Whether that is what it died of, and it makes sense to start it again."""
    return tries < MAX_STARTS and is_home_unfinished(stderr)


def retry_delay(tries: int) -> float:
    """Return for how many seconds others may come to an end with it, before the next start."""
    return 0.1 * 2.0 ** (tries - 1)


def start_retry_event(tries: int) -> ErrorOccurred:
    """Return what is told of a start that is made again."""
    message = f"Codex found its home half made, and is started again ({tries}/{MAX_STARTS - 1})"
    failure = Failure(kind=FailureKind.START_FAILED, message=message, retryable=True, phase="start")
    return ErrorOccurred(failure=failure, severity="warning")
