"""The shutdown of a run: interrupt, grace, cut, abandon, and all its time limits.

Each phase has a limit:

- STOPPING, and the manager ends the run: the adapter interrupts it, and its task has the grace (the
  `close` timeout) to return. If the adapter cannot interrupt or fails to, the task is cut at once.
- STOPPING, and the provider has ended the run: its task has the grace from the commit of the end.
- CUT or LATE: the task was cancelled within the grace or after it. It has until `UNWINDING` seconds
  after the grace to return; after a provider's end, another grace. Then it is abandoned: the run is
  OVER although its task is not.

A run whose task was not launched has nothing to end: it is OVER as soon as there is a reason.

All of this is synchronous and passes every queue, so it works while the store hangs. The timer task
(`timeouts`) watches `RunState.due` and calls `end_phase`.
"""

from __future__ import annotations

from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, Final, cast

import trio

from sessionmgr.adapter import InterruptRun, StopReason
from sessionmgr.model import EndCause, StallSuspected
from sessionmgr.otp import MailboxFull, OtpError, TaskCancelled, TaskCrashed, TaskHandle

if TYPE_CHECKING:
    from collections.abc import Generator

    from sessionmgr.adapter import ProviderAdapter, RunContext
    from sessionmgr.manager.clocks import Clocks
    from sessionmgr.manager.run_state import RunState
    from sessionmgr.model import Json
    from sessionmgr.otp import TaskSupervisor


UNWINDING: Final = 0.25
"""Seconds beyond the grace in which a cancelled task must return."""


# --- the task --------------------------------------------------------------------------------


async def run_adapter(
    run: RunState, /, adapter: ProviderAdapter, context: RunContext, beside: TaskSupervisor
) -> None:
    """Call the adapter's `run` and report its end. This is the body of the run's task.

    Its errors propagate. `beside` starts the task that interrupts the run: few runs need one, and a
    nursery for it would be a tenth of the cost of a run.
    """
    run.played = (adapter, beside)
    if not run.is_active:  # the run was ended just after its start
        _interrupt_or_cut(run)
    crash: BaseException | None = None
    try:
        try:
            await adapter.run(context)
        finally:
            crash = await _end_interruption(run)  # shielded  # noqa: ASYNC102
        if crash is not None:
            raise crash
    except BaseException as error:
        run.task_ended(_crash_of(run, error) or crash)
        raise
    run.task_ended(None)


async def _end_interruption(run: RunState) -> BaseException | None:
    """End the interrupting task; return the exception of its crash."""
    run.played = None  # there is nothing to interrupt any more
    if run.interruption is None:
        return None
    run.interruption.cancel()
    with trio.CancelScope(shield=True):  # noqa: ASYNC912  # its errors are waited for as well
        try:
            await run.interruption.result()
        except TaskCancelled:
            return None
        except TaskCrashed as crash:
            return crash.__cause__
    return None


def _crash_of(run: RunState, error: BaseException) -> BaseException | None:
    """Return the exception that ended the task; None if it was its cancellation alone."""
    if not run.was_cut:
        return _single_exception(error)
    if isinstance(error, BaseExceptionGroup):
        rest = cast("BaseExceptionGroup[BaseException]", error).split(trio.Cancelled)[1]
        return None if rest is None else _single_exception(rest)
    return None if isinstance(error, trio.Cancelled) else error


# --- its end, phase by phase -----------------------------------------------------------------


def begin_task_end(run: RunState, /) -> None:
    """Interrupt or cancel the task of a run that the manager ends."""
    run.due = run.stopped_at + run.grace
    run.abandon_at = run.due + UNWINDING
    _interrupt_or_cut(run)


def limit_task_end(run: RunState) -> None:
    """Limit the remaining time of the task after the provider's end was stored."""
    run.due = trio.current_time() + run.grace
    run.abandon_at = run.due + run.grace


def _interrupt_or_cut(run: RunState) -> None:
    if run.played is None:
        return  # its task has not begun, and checks this when it does; or it is returning
    adapter = run.played[0]
    if not (adapter.can_interrupt() and adapter.ref.alive):
        cut_task(run)  # or its branch of the tree stops, and the run with it
        return
    try:
        adapter.ref.cast(InterruptRun(run))
    except MailboxFull:
        cut_task(run)


def interrupt_task(run: RunState, /) -> None:
    """Start the task that asks the provider to end the run, if the run is still active."""
    if run.played is None or run.context is None:
        return
    adapter, beside = run.played
    try:
        run.interruption = beside.start_handle(
            TaskHandle(_interrupt, (run, adapter, run.context), None)
        )
    except OtpError:  # its branch of the tree stops, and the run with it
        cut_task(run)


async def _interrupt(run: RunState, adapter: ProviderAdapter, context: RunContext) -> None:
    try:
        await adapter.interrupt(context)  # `run` keeps reading, and returns when it is done
    except Exception:
        cut_task(run)
        raise


def end_phase(run: RunState) -> None:
    """End the present phase: cancel the task, or abandon it if it was cancelled before."""
    run.due, was_late = inf, run.is_late
    if not run.grace_expired():
        return
    if not was_late and run.stop is not None:  # one such event is enough
        note_stall(run, "close", run.grace, ending=run.stop.cause.value)
    if run.is_late:
        _cancel(run)
    elif run.is_abandoned:
        run.session_state.commands.task_abandoned(run)


def cut_task(run: RunState, /) -> None:
    """Cancel the task now, unless it was cancelled before."""
    if run.cut():
        _cancel(run)


def _cancel(run: RunState) -> None:
    # Through the nursery: a cancel scope of its own would cost a tenth of an idle run.
    if run.task is not None:
        run.task.cancel()
    if run.interruption is not None:
        run.interruption.cancel()
    run.due = run.abandon_at


def note_stall(run: RunState, clock: str, limit: float, **more: Json) -> None:
    """Record that a timeout warns or acts, with the evidence."""
    now, record = trio.current_time(), run.run
    begun = now if run.dispatched_at is None else run.dispatched_at
    evidence: dict[str, Json] = {
        "clock": clock,
        "limit": limit,
        "running_for": round(now - begun, 3),
        "open_tools": list(record.open_tools.values()),
        "open_approvals": list(record.open_approvals),
        "open_tasks": record.open_tasks,
        "turns": record.turns,
        **more,
    }
    silent = round(now - run.last_sign, 3)
    stalled = StallSuspected(state=clock, silent_for=silent, evidence=evidence, synthetic=True)
    run.session_state.commands.record_events(run, stalled)


async def wait_until_gone(run: RunState) -> None:
    """Wait until the task of a run that has ended is gone, for at most the grace."""
    if not run.gone.is_set():
        with trio.move_on_after(run.grace):
            await run.gone.wait()


async def wait_until_ended(run: RunState) -> None:
    """Wait, shielded, until the end of a run that is ending is stored.

    This lasts as long as its task may take to return and the store to be reachable again.
    """
    store = run.plan.clocks.of("store") or inf
    with trio.move_on_after(2 * run.grace + store, shield=True):
        await run.ended.wait()


async def end_all_runs(runs: dict[str, RunState], clocks: Clocks) -> None:
    """End all runs because the manager closes, and wait, shielded, until their ends are stored."""
    with trio.move_on_after(3 * clocks.of("close") + clocks.of("store"), shield=True):
        await _end_all_runs(runs)


async def _end_all_runs(runs: dict[str, RunState]) -> None:
    while runs:
        ending = list(runs.values())
        for run in ending:
            run.end(StopReason(cause=EndCause.SHUTDOWN, detail="the manager is closing"))
        for run in ending:
            await run.ended.wait()
            await run.gone.wait()
            runs.pop(run.id, None)
    await trio.lowlevel.checkpoint()


def _single_exception(error: BaseException) -> BaseException:
    """Return the only exception of nested groups, or the group itself."""
    if isinstance(error, BaseExceptionGroup):
        inner = list(cast("BaseExceptionGroup[BaseException]", error).exceptions)
        if len(inner) == 1:
            return _single_exception(inner[0])
        return cast("BaseException", error)
    return error


class ManagerLifetime:
    """The lifetime of a manager, until its block is left."""

    def __init__(self) -> None:
        self.is_over = False
        self._waiting: Final[dict[trio.CancelScope, float]] = {}

    def end(self) -> None:
        """End it: each wait continues for its own grace and no longer."""
        self.is_over = True
        now = trio.current_time()
        for scope, grace in self._waiting.items():
            scope.deadline = now + grace

    @contextmanager
    def cancel_after_end(self, grace: float) -> Generator[trio.CancelScope, None, None]:
        """Cancel the body some seconds after the end of the lifetime."""
        with trio.CancelScope() as scope:
            if self.is_over:
                scope.deadline = trio.current_time() + grace
            self._waiting[scope] = grace
            try:
                yield scope
            finally:
                del self._waiting[scope]
