"""The admission of a run to its session: it is queued or active once its recorder has stored it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from sessionmgr.adapter import StopReason
from sessionmgr.manager.errors import (
    BudgetExhausted,
    InboxFull,
    ManagerClosing,
    RecorderUnavailable,
    SessionIsClosed,
)
from sessionmgr.manager.inbox import MOST_RUNS
from sessionmgr.manager.run_plan import spent_budget_reason
from sessionmgr.manager.supervised_run import SupervisedRun
from sessionmgr.model import EndCause, IdKind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sessionmgr.manager.manager_state import ManagerState
    from sessionmgr.manager.run_plan import RunPlan
    from sessionmgr.manager.run_state import RunState
    from sessionmgr.manager.session_state import SessionState

ATTEMPTS: Final = 3


async def admit_run(
    manager_state: ManagerState,
    wake: Callable[[], Awaitable[SessionState]],
    plan: RunPlan,
    *,
    session_id: str,
    reopens: bool,
    follow_up: bool,
) -> RunState:
    """Admit a run; if the recorder dies before the admission is stored, ask the next recorder.

    Args:
        manager_state: The state of the manager.
        wake: Returns the live session, and wakes it first if it sleeps.
        plan: The plan of the run.
        session_id: The id of the session.
        reopens: Whether the run reopens a closed session.
        follow_up: Whether the prompt is a message to the run before it.

    Raises:
        ManagerClosing: The manager is closing.
        SessionIsClosed: The session is closed.
        InboxFull: Too many runs are queued.
        BudgetExhausted: A budget of the session or the manager is used up.
        RecorderUnavailable: No recorder could store the admission.
    """
    for _ in range(ATTEMPTS):
        with suppress(RecorderUnavailable):
            entry = await _admit(manager_state, await wake(), plan, reopens, follow_up)
            if entry.run.first_seq:
                return entry
    raise RecorderUnavailable(session_id)


async def _admit(
    manager_state: ManagerState, live: SessionState, plan: RunPlan, reopens: bool, follow_up: bool
) -> RunState:
    if live.closing and not reopens:
        raise SessionIsClosed(live.session.id)
    if not manager_state.open:  # closed while the session was woken
        raise ManagerClosing
    if len(live.runs) >= MOST_RUNS:
        raise InboxFull(len(live.runs), live.inbox.pending)
    spent = spent_budget_reason(plan.wish, live.account, manager_state.account)
    if spent is not None:
        raise BudgetExhausted(spent)
    entry = SupervisedRun(
        plan,
        live=live,
        timeouts=manager_state.timeouts,
        run_id=manager_state.new_id(IdKind.RUN),
        message_id=manager_state.new_id(IdKind.MESSAGE),
        follow_up=follow_up,
    )
    live.closing = live.sleeps_when_idle = False
    live.add_secrets(plan.secrets)
    live.commands.admit(entry, is_current=live.is_free)
    live.runs[entry.id] = manager_state.runs[entry.id] = entry
    live.enqueue(entry)
    live.add_waiter(entry.admitted)
    try:
        await entry.admitted.wait()
    except BaseException:
        detail = "the caller stopped waiting for the start"
        entry.end(StopReason(cause=EndCause.CALLER, detail=detail))
        raise
    return entry
