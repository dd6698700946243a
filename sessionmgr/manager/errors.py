"""Errors of sessions and the manager."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sessionmgr.adapter import CapabilityMissing, SessionError, StartRefused

if TYPE_CHECKING:
    from sessionmgr.model import Negotiation


class ArgumentTypeInvalid(SessionError, TypeError):
    """An argument of a call has a wrong type."""

    def __init__(self, call: str, name: str, value: object, wanted: str) -> None:
        super().__init__(f"{call}: {name} must be {wanted}, not {_shorten(value)}")
        self.name = name
        self.value = value


class ArgumentValueInvalid(SessionError, ValueError):
    """An argument of a call has an invalid value."""

    def __init__(self, call: str, name: str, value: object, why: str) -> None:
        super().__init__(f"{call}: {name} is {_shorten(value)}: {why}")
        self.name = name
        self.value = value


def _shorten(value: object) -> str:
    said = repr(value)
    return said if len(said) <= _SHOWN else f"{said[:_SHOWN]}…"


_SHOWN = 100


class BudgetUnenforceable(CapabilityMissing):
    """A budget was set for a provider that reports no figure for it."""

    def __init__(self, provider: str, negotiation: Negotiation, unit: str, amount: float) -> None:
        super().__init__(provider, negotiation)
        counts, kind = ("cost", "dollar") if unit == "usd" else ("usage", "token")
        self.why = (
            f"{provider} reports no {counts}, so a {kind} budget cannot be enforced; "
            f"remove the budget for {provider}"
        )
        self.args = (f"budget of {amount:g} {unit}: {self.why}",)


class BudgetExhausted(StartRefused):
    """The budget of the session or of the manager is used up."""

    def __init__(self, why: str) -> None:
        super().__init__(f"{why}; raise it to start more runs")


class RunRequestUnsupported(StartRefused):
    """The provider does not support a field of the run request."""

    def __init__(self, provider: str, field: str) -> None:
        super().__init__(f"{provider} does not support {field}; remove it")
        self.provider = provider
        self.field = field


class RunRequestInvalid(StartRefused, ValueError):
    """A field of the run request has a value that is invalid, at least for this provider."""

    def __init__(self, provider: str, fault: str) -> None:
        field, _, why = fault.partition(": ")
        super().__init__(fault)
        self.provider = provider
        self.field = field
        self.why = why


class DirectoryMissing(StartRefused):
    """The session's directory does not exist."""

    def __init__(self, path: str) -> None:
        what = "not a directory" if os.path.exists(path) else "no such directory"  # noqa: PTH110
        super().__init__(f"{what}: {path}")
        self.path = path


class ProviderNotReady(StartRefused):
    """The provider's program is not installed or has no login."""

    def __init__(self, provider: str, detail: str) -> None:
        super().__init__(f"{provider}: {detail}")
        self.provider = provider
        self.detail = detail


class SessionIsClosed(StartRefused):
    """The session is closed and accepts no more runs."""

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"{session_id} is closed: it takes no more runs until you reopen it with "
            "manager.session(id, reopen=True)"
        )
        self.session_id = session_id


class SessionBusy(StartRefused):
    """Another live manager owns the session; two would write one record."""

    def __init__(self, session_id: str, holder: object, expires: int = 0, detail: str = "") -> None:
        said = f": {detail}" if detail else ""
        super().__init__(f"{session_id} is in use by another manager{said}")
        self.session_id = session_id
        self.holder = holder
        self.expires = expires
        """When its lease expires without renewal, in milliseconds since 1970."""


class InboxFull(SessionError):
    """A session accepts no more: the sender did not wait for room or runs, or the store hangs."""

    def __init__(self, items: int, size: int) -> None:
        super().__init__(
            f"{items} runs, questions or batches of events, of {size} bytes, wait in this session: "
            "wait for room between two reads (`await run.room()`), for answers, or for a run's end"
        )
        self.items = items
        self.size = size


class RecorderUnavailable(StartRefused):
    """The admission of the run could not be stored, so the run was not started."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"the events of {session_id} cannot be stored now, so nothing was started")
        self.session_id = session_id


class ProviderDown(StartRefused):
    """The provider's branch stopped after repeated crashes; it starts again after a pause."""

    def __init__(self, provider: str, why: str, retry_in: float) -> None:
        super().__init__(f"{provider} is down ({why}); next attempt in {retry_in:.0f} s")
        self.provider = provider
        self.retry_in = retry_in


class ManagerClosing(StartRefused):
    """The manager is closing, or its block has not begun."""

    def __init__(self, why: str = "the manager is closing and admits no more runs") -> None:
        super().__init__(why)


class NotPausable(SessionError):
    """The run cannot be paused, because it could not be resumed."""

    def __init__(self, run_id: str, why: str) -> None:
        super().__init__(f"{run_id} cannot be paused: {why}")
        self.run_id = run_id


class NotResumable(SessionError):
    """The paused or finished run cannot be resumed."""

    def __init__(self, run_id: str, why: str) -> None:
        super().__init__(f"{run_id} cannot be resumed: {why}")
        self.run_id = run_id


class ManagerDown(SessionError):
    """The manager stopped after repeated crashes; `__cause__` is the last error."""

    def __init__(self, why: object) -> None:
        super().__init__(f"the session manager stopped after repeated crashes: {why}")


class NotInTrio(SessionError):
    """The caller is not a task of the manager's own `trio.run`."""

    def __init__(self, *, of_another: bool = False) -> None:
        where = (
            "the manager was opened in another trio.run"
            if of_another
            else "this is not a trio task: it is asyncio, a plain function or a thread"
        )
        super().__init__(
            f"{where}. A manager runs on trio: start your program with trio.run(main), or use "
            "`with sessionmgr.open_portal() as portal` from asyncio, FastAPI, Jupyter and plain "
            "threads; from another thread of a trio program, go through "
            "trio.from_thread.run(..., trio_token=manager.token)"
        )
