"""The classification of an ACP agent's errors: the only module that assigns kinds of failure.

Pure. The protocol has few codes, so agents put the cause into the code (an HTTP status), into
`data`, or only into the message. They are read in this order: a name of the error in `data`, the
code, words in the message. A turn that ends without any sign of work is a failure, too: some agents
report the failure of the model's server as a normal end.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from sessionmgr.adapter.kit import BUSY
from sessionmgr.model import NOTHING_USED, Failure, FailureKind
from sessionmgr_adapters.acp.decode import as_dict, as_text
from sessionmgr_adapters.acp.frames import AcpRefusal, PromptEnded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.model import Json
    from sessionmgr_adapters.acp.state import AcpState
    from sessionmgr_adapters.acp.updates import StateUpdate

AUTH_REQUIRED: Final = -32000
NOT_FOUND: Final = -32002
NO_METHOD: Final = -32601
INVALID_PARAMS: Final = -32602
INVALID_REQUEST: Final = -32600
RATE_LIMITED_STATUS: Final = 429

_BY_NAME: Final = {
    "authenticationfailed": FailureKind.AUTH_FAILED,
    "authrequired": FailureKind.AUTH_FAILED,
    "providerautherror": FailureKind.AUTH_FAILED,
    "unauthorized": FailureKind.AUTH_FAILED,
    "accessdenied": FailureKind.AUTH_FAILED,
    "billingerror": FailureKind.BILLING,
    "ratelimit": FailureKind.RATE_LIMITED,
    "ratelimited": FailureKind.RATE_LIMITED,
    "ratelimitexceeded": FailureKind.RATE_LIMITED,
    "quotaexhausted": FailureKind.QUOTA_EXHAUSTED,
    "usagelimitexceeded": FailureKind.QUOTA_EXHAUSTED,
    "overloaded": FailureKind.OVERLOADED,
    "overloadederror": FailureKind.OVERLOADED,
    "serveroverloaded": FailureKind.OVERLOADED,
    "contextexhausted": FailureKind.CONTEXT_EXCEEDED,
    "contextoverflowerror": FailureKind.CONTEXT_EXCEEDED,
    "contextwindowexceeded": FailureKind.CONTEXT_EXCEEDED,
    "budgetexhausted": FailureKind.BUDGET_EXCEEDED,
    "sessionbudgetexceeded": FailureKind.BUDGET_EXCEEDED,
    "modelnotfound": FailureKind.MODEL_NOT_FOUND,
    "cyberpolicy": FailureKind.REFUSED,
    "policydenied": FailureKind.REFUSED,
    "turnagentbusy": FailureKind.SESSION_BUSY,
}
"""Kinds by an error's name in `data`, in lower case and without its punctuation."""
_LOST_NAMES: Final = frozenset(
    {
        *("transportlost", "workershutdown", "internalservererror", "servererror"),
        *("httpconnectionfailed", "responsestreamconnectionfailed", "responsestreamdisconnected"),
        *("responsetoomanyfailedattempts",),
    }
)
"""Names of errors after which another attempt may succeed."""
_NAME_FIELDS: Final = ("errorKind", "codexErrorInfo", "codex_error_info", "errorName", "code")
_TEXT_FIELDS: Final = ("message", "details", "error")
_BY_STATUS: Final = {
    401: FailureKind.AUTH_FAILED,
    402: FailureKind.BILLING,
    403: FailureKind.AUTH_FAILED,
    RATE_LIMITED_STATUS: FailureKind.RATE_LIMITED,
    503: FailureKind.OVERLOADED,
    529: FailureKind.OVERLOADED,
}
_BY_CODE: Final = {
    AUTH_REQUIRED: FailureKind.AUTH_FAILED,
    NO_METHOD: FailureKind.CAPABILITY_MISSING,
    INVALID_PARAMS: FailureKind.CONFIG_INVALID,
    INVALID_REQUEST: FailureKind.CONFIG_INVALID,
}
_STATUSES: Final = range(400, 600)
_TRANSIENT_STATUSES: Final = frozenset({408, 409, 425, *range(500, 600)})
_WORDS: Final = {
    FailureKind.CONTEXT_EXCEEDED: (
        *("maximum context", "context (length|window)", "context exceeds", "prompt is too long"),
        *(r"exceed\w* (the )?context", "context_length_exceeded", "too large to compact"),
        *("context.?window.?exceeded",),
    ),
    FailureKind.QUOTA_EXHAUSTED: (
        *("(exhausted|exceeded) your .{0,20}(quota|limit)", "insufficient_quota", "usage limit"),
        *("quota (is |was )?(exceeded|exhausted)",),
    ),
    FailureKind.RATE_LIMITED: ("rate.?limit", "too many requests", r"\b429\b"),
    FailureKind.BILLING: ("credit balance", "more credits", "billing", "payment required"),
    FailureKind.AUTH_FAILED: (
        *(r"\b401\b", "unauthori[sz]ed", "unauthenticated", "not logged in", "please log ?in"),
        *("authentication (is )?(required|failed)", "authentication.?error", r"\bno api key"),
        *(r"(incorrect|invalid|bad|missing) ((\w+_)?api[_ ])?key\b",),
        *(r"api[_ ]key\b.{0,40}(not (set|found|configured)|missing|required)",),
        *("configuration value not found: .*(provider|_key)", "missing env.{0,20}: .*_key"),
    ),
    FailureKind.OVERLOADED: (
        "overloaded",
        "high demand",
        "service.?unavailable",
        r"\b529\b",
        r"\b503\b",
    ),
    FailureKind.SESSION_NOT_FOUND: (
        *("session.{0,60}not (found|exist)", "(unknown|invalid|no such) session"),
        *("no previous sessions", "no rollout found"),
    ),
    FailureKind.SESSION_BUSY: ("turn is already in progress", "session is busy"),
    FailureKind.MODEL_NOT_FOUND: ("model.{0,60}not (found|exist|available)",),
}
_BY_WORDS: Final = {
    kind: re.compile("|".join(words), re.IGNORECASE) for kind, words in _WORDS.items()
}
_LOST_WORDS: Final = re.compile(
    r"\bterminated\b|server.?error|network error|\b50[0-9]\b|econnreset|econnrefused|fetch failed"
    r"|connection.?error|socket hang up|unexpected eof|error decoding response body|timed? ?out"
    r"|connection (was )?(lost|reset|closed)|stream disconnected|premature",
    re.IGNORECASE,
)
_STATUS_IN_TEXT: Final = re.compile(
    r"\b(error code|status( code)?)( ?[:=] ?| )(?P<code>[45]\d\d)\b", re.IGNORECASE
)
"""How the message of an error names the status of HTTP."""
_TRANSIENT: Final = {FailureKind.RATE_LIMITED, FailureKind.OVERLOADED, FailureKind.SESSION_BUSY}
_NOT_RESUMABLE: Final = {FailureKind.CONTEXT_EXCEEDED, FailureKind.SESSION_NOT_FOUND}
_OPENING: Final = frozenset({"session/load", "session/resume", "session/fork"})
_SUCCESS: Final = frozenset({"end_turn", None})
_MOST_TEXT: Final = 500
"""Characters of the agent's last message that a failure names."""
_BY_REASON: Final = {
    "refusal": (FailureKind.REFUSED, "the model refused the request"),
    "max_tokens": (FailureKind.PROVIDER_ERROR, "the model reached its limit of output tokens"),
    "max_turn_requests": (
        FailureKind.BUDGET_EXCEEDED,
        "the agent reached its limit of calls of the model in a turn",
    ),
    "cancelled": (FailureKind.PROVIDER_ERROR, "the agent cancelled the turn"),
}
EMPTY_TURN: Final = (
    "the turn ended without a text, a tool call or any usage: the agent does not say why; its log"
    " or its stderr may"
)
UNANSWERED: Final = (
    "the turn ended without a text after its last tool call: the agent does not say why; its log"
    " or its stderr may"
)


def failure_of_refusal(refusal: AcpRefusal, phase: str = "start") -> Failure:
    """Return the failure for a request that the agent refused."""
    kind, is_transient = _classify(refusal)
    what = "the turn failed" if phase == "turn" else f"the agent refused {refusal.method}"
    return Failure(
        kind=kind,
        message=f"{what}: {_cause(refusal) or 'no reason given'}",
        retryable=is_transient,
        resumable=kind not in _NOT_RESUMABLE and phase != "start",
        provider_code=str(refusal.code) if refusal.code else None,
        phase=phase,
    )


def failure_of_login(
    refusal: AcpRefusal, remedy: str, known: Sequence[str], tried: str | None, wanted: str | None
) -> Failure:
    """Return the failure for an agent that wants a login.

    Args:
        refusal: What the agent refused last.
        remedy: How to log in.
        known: The methods that need no terminal.
        tried: The method that had no effect.
        wanted: The value of `options.auth`.
    """
    why, others = "", ", ".join(each for each in known if each != tried)
    if wanted is not None:
        why = f"options.auth: {wanted!r} did not work; "
    elif tried is not None:
        why = f"the login method {tried!r} did not work; "
    more = f"; or set options.auth to one of: {others}" if others else ""
    message = f"{why}{_cause(refusal).rstrip('.')}: {remedy}{more}"
    return Failure(kind=FailureKind.AUTH_FAILED, message=message, phase="start")


def with_remedy(failure: Failure, login: str) -> Failure:
    """Return a failure; one of the login says how to log in."""
    if failure.kind is not FailureKind.AUTH_FAILED or login in failure.message:
        return failure
    return replace(failure, message=f"{failure.message}; {login}")


def failure_of_turn(
    end: PromptEnded | StateUpdate | AcpRefusal,
    state: AcpState,
    error_text: str | None = None,
    *,
    answers: bool = False,
) -> Failure | None:
    """Return the failure with which a turn ended; None if it succeeded.

    Args:
        end: The end of the turn: `state.turn.end`, or the refusal of the prompt.
        state: The state of the run, after the end.
        error_text: A regular expression for how the agent's last message reports an error of the
            model's server, if it does so instead of failing; earlier calls may have had success.
        answers: Whether a turn that succeeds always ends with a text: the agent hides errors.
    """
    if isinstance(end, AcpRefusal):
        return failure_of_refusal(end, "turn")
    reason = end.stop_reason
    if reason == "error" and not isinstance(end, PromptEnded):
        return failure_of_refusal(_reported(end.error), "turn")
    if reason in _SUCCESS:
        failure = _hidden_failure(state, reason, error_text)
        if failure is None and answers and not state.turn.is_answered:
            return _failure(FailureKind.PROVIDER_ERROR, UNANSWERED, reason)
        return failure
    unknown = f"the turn ended for a reason that is unknown here: {reason}"
    kind, message = _BY_REASON.get(reason or "", (FailureKind.PROVIDER_ERROR, unknown))
    said = state.turn.text.strip() if reason == "refusal" else ""
    if len(said) > _MOST_TEXT:
        said = f"{said[:_MOST_TEXT]}…"
    status = _STATUS_IN_TEXT.search(said)
    if status is not None:  # some agents end a turn so after an error of the model's server
        code = int(status["code"])
        return failure_of_refusal(
            AcpRefusal(method="session/prompt", code=code, message=said), "turn"
        )
    return _failure(kind, f"{message}: {said}" if said else message, reason)


def _hidden_failure(state: AcpState, reason: str | None, error_text: str | None) -> Failure | None:
    """Return the failure of a turn that ended as if it had succeeded; None if it did."""
    turn, text = state.turn, state.turn.text
    found = None if error_text is None else re.search(error_text, text)
    if found is not None or turn.has_error:
        text = text[0 if found is None else found.start() :].strip()
        return failure_of_refusal(AcpRefusal(method="session/prompt", code=0, message=text), "turn")
    if turn.has_text or turn.has_tools or turn.usage != NOTHING_USED:
        return None
    return _failure(FailureKind.PROVIDER_ERROR, EMPTY_TURN, reason)


def _failure(kind: FailureKind, message: str, code: str | None) -> Failure:
    return Failure(kind=kind, message=message, resumable=True, provider_code=code, phase="turn")


def _reported(error: Json) -> AcpRefusal:
    """Return the error of a turn (version 2) as a refusal of its prompt."""
    given = as_dict(error)
    code = given.get("code")
    return AcpRefusal(
        method="session/prompt",
        code=code if isinstance(code, int) else 0,
        message=as_text(given.get("message")),
        data=given.get("data"),
    )


def _classify(refusal: AcpRefusal) -> tuple[FailureKind, bool]:
    """Return the kind of a refusal, and whether another attempt may succeed."""
    code, text = refusal.code, _cause(refusal)
    if code is None:
        return FailureKind.PROTOCOL_ERROR, False
    if code == BUSY and not refusal.data:
        return FailureKind.OVERLOADED, True
    names = _names(refusal.data)
    kind = next((_BY_NAME[each] for each in names if each in _BY_NAME), None)
    kind = kind or _kind_of_status(code, text) or _kind_of_words(text) or _kind_of_code(refusal)
    is_lost = code in _TRANSIENT_STATUSES or any(each in _LOST_NAMES for each in names)
    is_lost = is_lost or _LOST_WORDS.search(text) is not None
    return kind, kind in _TRANSIENT or (kind is FailureKind.PROVIDER_ERROR and is_lost)


def _kind_of_status(code: int, text: str) -> FailureKind | None:
    if code not in _STATUSES:
        return None
    found = _kind_of_words(text)
    if found is FailureKind.QUOTA_EXHAUSTED and code == RATE_LIMITED_STATUS:
        return found
    return _BY_STATUS.get(code) or found or FailureKind.PROVIDER_ERROR


def _kind_of_words(text: str) -> FailureKind | None:
    return next((kind for kind, words in _BY_WORDS.items() if words.search(text)), None)


def _kind_of_code(refusal: AcpRefusal) -> FailureKind:
    if refusal.method in _OPENING and refusal.code in (INVALID_PARAMS, NOT_FOUND):
        return FailureKind.SESSION_NOT_FOUND
    return _BY_CODE.get(refusal.code or 0, FailureKind.PROVIDER_ERROR)


def _names(data: Json) -> list[str]:
    """Return the names that `data` has for the error."""
    found: list[str] = []
    for field in _NAME_FIELDS:
        value = as_dict(data).get(field)
        name = value if isinstance(value, str) else next(iter(as_dict(value)), "")
        found.append(re.sub(r"[^a-z]", "", name.lower()))
    return [each for each in found if each]


def _cause(refusal: AcpRefusal) -> str:
    """Return the message of a refusal, and the one in its `data` where that has more."""
    data = refusal.data
    inner = [data] if isinstance(data, str) else [as_dict(data).get(name) for name in _TEXT_FIELDS]
    texts = [refusal.message, *(each for each in inner if isinstance(each, str))]
    return ": ".join(dict.fromkeys(each.strip() for each in texts if each.strip()))
