"""Errors of requests, and the JSON-RPC error that each error of the manager becomes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from sessionmgr.adapter import AdapterBroken, StartRefused
from sessionmgr.errors import SessionmgrError
from sessionmgr.manager import (
    BudgetExhausted,
    InboxFull,
    ManagerClosing,
    ProviderDown,
    ProviderNotReady,
    RecorderUnavailable,
    SessionBusy,
)
from sessionmgr.model import FailureKind
from sessionmgr.process import EnvironmentVariableInvalid
from sessionmgr.store import LeaseHeld, UnknownId

if TYPE_CHECKING:
    from sessionmgr.model import Failure, Json

log: Final = logging.getLogger("sessionmgr.acp_server")

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
NO_SUCH_METHOD: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
CANCELLED: Final = -32800
AUTH_REQUIRED: Final = -32000
BUSY: Final = -32001
"""The session or the agent has too much to do now; the same request may succeed later."""
NOT_FOUND: Final = -32002

_BUSY: Final = (SessionBusy, LeaseHeld, ProviderDown, InboxFull)
_NOT_NOW: Final = (
    *(ManagerClosing, RecorderUnavailable, BudgetExhausted, ProviderNotReady, AdapterBroken),
)
_PARAMS: Final = (StartRefused, EnvironmentVariableInvalid, ValueError, TypeError)


class AcpRequestRefused(SessionmgrError):
    """A request of the client is answered with this error."""

    def __init__(self, code: int, message: str, **data: Json) -> None:
        super().__init__(message)
        self.code = code
        self.data: dict[str, Json] = data


def refusal_of(error: Exception) -> AcpRequestRefused:
    """Return the error with which a request is answered whose handler raised `error`."""
    name, text = type(error).__name__, str(error)
    match error:
        case AcpRequestRefused():
            return error
        case UnknownId():
            return AcpRequestRefused(NOT_FOUND, text, error=name)
        case _ if isinstance(error, _BUSY):
            return AcpRequestRefused(BUSY, text, error=name)
        case _ if isinstance(error, _NOT_NOW):
            return AcpRequestRefused(INTERNAL_ERROR, text, error=name)
        case _ if isinstance(error, SessionmgrError) and isinstance(error, _PARAMS):
            return AcpRequestRefused(INVALID_PARAMS, text, error=name)
        case SessionmgrError():
            return AcpRequestRefused(INTERNAL_ERROR, text, error=name)
        case _:
            log.error("A handler failed. error=%s", error, exc_info=error)
            return AcpRequestRefused(INTERNAL_ERROR, f"internal error: {name}: {text}", error=name)


def refusal_of_failure(failure: Failure) -> AcpRequestRefused:
    """Return the error with which a prompt is answered whose run failed."""
    is_login = failure.kind is FailureKind.AUTH_FAILED
    data: dict[str, Json] = {"kind": failure.kind.value, "retryable": failure.retryable}
    if failure.retry_at is not None:
        data["retryAt"] = failure.retry_at
    code = AUTH_REQUIRED if is_login else INTERNAL_ERROR
    return AcpRequestRefused(code, failure.message, **data)
