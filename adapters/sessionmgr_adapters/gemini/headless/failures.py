"""The classification of Gemini's errors. Pure.

An exit code of Gemini's own decides first. Otherwise the status of the model's server decides: it
stands in the message or on stderr, or is the exit code, which lacks its higher bits. Known
sentences tell the rest.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from sessionmgr.adapter.kit import exit_failure
from sessionmgr.model import Failure, FailureKind, RetryScheduled

if TYPE_CHECKING:
    from sessionmgr.process import ExitReport, StderrTail

_BY_EXIT_CODE: Final = {
    41: FailureKind.AUTH_FAILED,
    42: FailureKind.CONFIG_INVALID,
    44: FailureKind.START_FAILED,
    52: FailureKind.CONFIG_INVALID,
    53: FailureKind.BUDGET_EXCEEDED,
    54: FailureKind.PROVIDER_ERROR,
    55: FailureKind.CONFIG_INVALID,
}
UNTRUSTED: Final = 55
_REMEDY: Final = {UNTRUSTED: "trust the directory in Gemini, or set the option trust"}
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
_STATUSES: Final = (400, *_BY_STATUS, 408, 500, 502, 504)
_BY_LOW_BITS: Final = {status & 255: status for status in _STATUSES if status & 255 > 128}
_SERVERS_FAULT: Final = 500

# Gemini's own sentences, and those of its API. The first that is found decides.
_SENTENCES: Final = (
    ("api key not valid", FailureKind.AUTH_FAILED),
    ("you must specify the gemini_api_key", FailureKind.AUTH_FAILED),
    ("invalid auth method", FailureKind.AUTH_FAILED),
    ("quota", FailureKind.QUOTA_EXHAUSTED),
    ("context length", FailureKind.CONTEXT_EXCEEDED),
    ("maximum number of tokens", FailureKind.CONTEXT_EXCEEDED),
    ("was blocked due to", FailureKind.REFUSED),
    ("maximum session turns", FailureKind.BUDGET_EXCEEDED),
    ("invalid session identifier", FailureKind.SESSION_NOT_FOUND),
    ("no previous sessions found", FailureKind.SESSION_NOT_FOUND),
    ("model is overloaded", FailureKind.OVERLOADED),
)
_TRANSIENT_SENTENCES: Final = (
    *("terminated", "fetch failed", "socket hang up", "without a finish reason"),
    *("empty response", "econnre", "no final response text"),
)
_TRANSIENT: Final = {FailureKind.RATE_LIMITED, FailureKind.OVERLOADED}
_UNRESUMABLE: Final = {FailureKind.CONTEXT_EXCEEDED, FailureKind.SESSION_NOT_FOUND}

ERROR_LINE: Final = "[ERROR] "
"""Beginning of a line of stderr that reports an error beside plain text."""
_LABEL: Final = re.compile(r"^\[API Error: (.*?)\](?=\n|$)", re.DOTALL)
_RETRY: Final = re.compile(
    r"^Attempt (\d+) failed(?: with status (\d+)| with (429) error[^.]*)?([.:])? ?(.*)$"
)
_RETRYING: Final = re.compile(r"Retrying (after \d+ms|with backoff)\.*")
_DELAY: Final = re.compile(r"Retrying after (\d+)ms")
_LOGGED_STATUS: Final = re.compile(r"^  (?:code|status): (\d{3}),?$", re.MULTILINE)
_LOGGED_ERROR: Final = re.compile(
    r"^Error when talking to Gemini API .*?\.json \w*Error: (.*)$", re.MULTILINE
)
# Lines of stderr without information for users.
_IRRELEVANT: Final = re.compile(
    r"\[STARTUP\]|Ripgrep is not|YOLO mode is enabled|Warning: |Attempt \d+ failed|Suggested retry"
    r"|\s+at |Loaded cached credentials|Approval mode "
)


_UNRULED: Final = ("Policy file error in policy.toml", "Ignoring --admin-policy")


class _ApiError(msgspec.Struct):
    code: int = 0
    message: str = ""
    status: str | None = None


class _ApiErrorBody(msgspec.Struct):
    error: _ApiError


def error_failure(message: str, exit_code: int | None = None, stderr: str = "") -> Failure:
    """Return the failure for an error that Gemini has reported."""
    api = _api_error(message)
    status = api.code or _BY_LOW_BITS.get(exit_code or 0) or _logged_status(stderr)
    own = _BY_EXIT_CODE.get(exit_code or 0)
    text = clean_message(api.message or message)
    kind = _sentence_kind(text) or own or _BY_STATUS.get(status, FailureKind.PROVIDER_ERROR)
    if kind is FailureKind.CONFIG_INVALID and exit_code in _REMEDY:
        text = f"{text}; {_REMEDY[exit_code]}"
    has_broken_off = any(each in text.lower() for each in _TRANSIENT_SENTENCES)
    return Failure(
        kind=kind,
        message=text or "Gemini reported an error without a message",
        retryable=kind in _TRANSIENT
        or status >= _SERVERS_FAULT
        or (kind is FailureKind.PROVIDER_ERROR and has_broken_off),
        resumable=kind not in _UNRESUMABLE,
        provider_code=str(status) if status else None,
        exit_code=exit_code,
        phase="turn",
    )


def missing_outcome_failure(facts: ExitReport, tail: StderrTail, *, has_begun: bool) -> Failure:
    """Return the failure of a process that exited without reporting an outcome."""
    said = relevant_lines(tail.text())
    failure = exit_failure(facts, tail, phase="turn" if has_begun else "start")
    logged = _LOGGED_ERROR.findall(tail.text())
    if logged and facts.exit_code:
        return error_failure(logged[-1], facts.exit_code, tail.text())
    own = facts.exit_code in _BY_EXIT_CODE or _sentence_kind(said) is not None
    if own and said and not has_begun:
        found = error_failure(said, facts.exit_code)
        return replace(found, phase="start", resumable=False, stderr_tail=failure.stderr_tail)
    words = said.rpartition("\n")[2]
    how = failure.message.partition(":")[0]
    message = f"Gemini ended without a result ({how})" + (f": {words}" if words else "")
    return replace(failure, message=message, retryable=has_begun, resumable=has_begun)


def is_unruled(line: str) -> bool:
    """Whether a line of stderr says that Gemini does not apply the run's policy."""
    return any(each in line for each in _UNRULED)


UNRULED: Final = Failure(
    kind=FailureKind.PERMISSION_REFUSED,
    message="Gemini does not apply the policy that keeps the run to its permission mode; "
    "update Gemini CLI, or use dangerously_skip_permissions without tools_denied",
    phase="start",
)


def relevant_lines(stderr: str) -> str:
    """Return the lines of stderr that tell something to users."""
    lines = [each for each in stderr.splitlines() if each.strip() and not _IRRELEVANT.match(each)]
    return "\n".join(lines).strip()


def clean_message(message: str) -> str:
    """Return a message without Gemini's label."""
    return _LABEL.sub(r"\1", message.strip()).strip()


class RetryReader:
    """Reader of the retries that Gemini reports on stderr, in one line or in two."""

    def __init__(self) -> None:
        self._attempt = 0
        self._failure: Failure | None = None

    def read(self, line: str) -> RetryScheduled | None:
        """Return the event for a line; None if it does not complete a report."""
        begun = _RETRY.match(line)
        if begun is not None:
            attempt, named, limited, separator, words = begun.groups()
            self._attempt = int(attempt) + 1
            # Gemini names a status only of other errors than those of its quota.
            status = int(named or limited or (429 if separator == ":" else 0))
            self._failure = _retry_failure(words, status)
        delay = _DELAY.search(line)
        if self._failure is None or (delay is None and "with backoff" not in line):
            return None
        failure, self._failure = self._failure, None
        seconds = None if delay is None else int(delay.group(1)) / 1000
        return RetryScheduled(by="provider", attempt=self._attempt, delay=seconds, failure=failure)


def _retry_failure(words: str, status: int) -> Failure:
    said = _RETRYING.sub("", words).strip(" .")
    message = _api_error(said.partition(": ")[2]).message or said or "no reason given"
    return Failure(
        kind=_BY_STATUS.get(status, FailureKind.PROVIDER_ERROR),
        message=message,
        retryable=True,
        resumable=True,
        provider_code=str(status) if status else None,
        phase="turn",
    )


def _api_error(message: str) -> _ApiError:
    """Return the answer of the model's server, if the message consists of it."""
    text = clean_message(message)
    try:
        return msgspec.json.decode(text, type=_ApiErrorBody).error
    except (msgspec.DecodeError, RecursionError):
        return _ApiError()


def _logged_status(stderr: str) -> int:
    """Return the status in the error that Gemini logged last; 0 if there is none."""
    found = _LOGGED_STATUS.findall(stderr)
    return int(found[-1]) if found else 0


def _sentence_kind(text: str) -> FailureKind | None:
    said = text.lower()
    return next((kind for words, kind in _SENTENCES if words in said), None)
