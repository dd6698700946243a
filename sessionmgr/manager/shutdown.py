"""The end of a run: interrupt, grace, cut, abandon, and all its time limits.

Each phase of the end has a limit:

- STOPPING, the run was ended by another than its provider: the adapter interrupts it, and its task
  has the grace (the `close` timeout) to return. Without a way to interrupt, or if that fails, the
  task is cut at once.
- STOPPING, the provider has ended the run: its task has the grace from the storing of the end.
- CUT or LATE, the task was cancelled, before the grace was over or then: it has `UNWINDING` seconds
  after the grace, or after an end of its provider another grace, to leave. Then it is abandoned:
  the run is OVER without its task.

A run whose task was not launched has nothing to end: it is OVER as soon as there is a reason.

All of this is synchronous and passes every queue, so it works while the store hangs. The timer task
(`timeouts`) looks at `RunState.due` and calls `time_is_up`.
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
"""Seconds that a task which was cut has to leave, beyond the grace."""


# --- the task --------------------------------------------------------------------------------


async def run_adapter(
    run: RunState, /, adapter: ProviderAdapter, context: RunContext, beside: TaskSupervisor
) -> None:
    """Be the run's task: call the adapter's `run`, and report the end. Its errors propagate.

    `beside` starts the task that interrupts the run: few runs need one, and a nursery for it
    would be a tenth of the cost of a run.
    """
    run.played = (adapter, beside)
    if not run.is_active:  # it was ended just after its start
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
    """End the interruption with the task; return the exception of its crash."""
    run.played = None  # from now on there is nothing to interrupt
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
    """Return what ended the task; None if that was its cut alone."""
    if not run.was_cut:
        return _single_exception(error)
    if isinstance(error, BaseExceptionGroup):
        rest = cast("BaseExceptionGroup[BaseException]", error).split(trio.Cancelled)[1]
        return None if rest is None else _single_exception(rest)
    return None if isinstance(error, trio.Cancelled) else error


# --- its end, step by step -------------------------------------------------------------------


def begin_task_end(run: RunState, /) -> None:
    """End the task of a run that another than its provider has ended."""
    run.due = run.stopped_at + run.grace
    run.abandon_at = run.due + UNWINDING
    _interrupt_or_cut(run)


def limit_task_end(run: RunState) -> None:
    """Limit the time that the task has left after its provider's end was stored."""
    run.due = trio.current_time() + run.grace
    run.abandon_at = run.due + run.grace


def _interrupt_or_cut(run: RunState) -> None:
    if run.played is None:
        return  # its task has not begun, and asks again when it does; or it is leaving
    adapter = run.played[0]
    if not (adapter.can_interrupt() and adapter.ref.alive):
        cut_task(run)  # or its branch of the tree is going down, and takes the run with it
        return
    try:
        adapter.ref.cast(InterruptRun(run))
    except MailboxFull:
        cut_task(run)


def interrupt_task(run: RunState, /) -> None:
    """Start the task that asks the provider to end the run, if the run is still on."""
    if run.played is None or run.context is None:
        return
    adapter, beside = run.played
    try:
        run.interruption = beside.start_handle(
            TaskHandle(_interrupt, (run, adapter, run.context), None)
        )
    except OtpError:  # its branch of the tree is going down, and takes the run with it
        cut_task(run)


async def _interrupt(run: RunState, adapter: ProviderAdapter, context: RunContext) -> None:
    try:
        await adapter.interrupt(context)  # `run` reads on, and returns when it is done
    except Exception:
        cut_task(run)
        raise


def end_phase(run: RunState) -> None:
    """End the present phase: cut the task, or abandon it if that was done."""
    run.due, was_late = inf, run.is_late
    if not run.grace_expired():
        return
    if not was_late and run.stop is not None:  # the record says it once
        note_stall(run, "close", run.grace, ending=run.stop.cause.value)
    if run.is_late:
        _cancel(run)
    elif run.is_abandoned:
        run.session_state.commands.task_abandoned(run)


def cut_task(run: RunState, /) -> None:
    """Cancel the task now, unless that was done."""
    if run.cut():
        _cancel(run)


def _cancel(run: RunState) -> None:
    # By its place in the nursery: a scope of its own would cost a tenth of a run at rest.
    if run.task is not None:
        run.task.cancel()
    if run.interruption is not None:
        run.interruption.cancel()
    run.due = run.abandon_at


def note_stall(run: RunState, clock: str, limit: float, **more: Json) -> None:
    """Have the record say that a clock warns or acts, with the evidence."""
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
    """Wait, shielded, until the end of a run that is being ended is stored.

    That is as long as its task has to leave, and the store to come back.
    """
    store = run.plan.clocks.of("store") or inf
    with trio.move_on_after(2 * run.grace + store, shield=True):
        await run.ended.wait()


async def end_all_runs(runs: dict[str, RunState], clocks: Clocks) -> None:
    """End all runs, because the manager goes down, and wait, shielded, until that is stored."""
    with trio.move_on_after(3 * clocks.of("close") + clocks.of("store"), shield=True):
        await _end_all_runs(runs)


async def _end_all_runs(runs: dict[str, RunState]) -> None:
    while runs:
        ending = list(runs.values())
        for run in ending:
            run.end(StopReason(cause=EndCause.SHUTDOWN, detail="the manager is going down"))
        for run in ending:
            await run.ended.wait()
            await run.gone.wait()
            runs.pop(run.id, None)
    await trio.lowlevel.checkpoint()


def _single_exception(error: BaseException) -> BaseException:
    """Return the exception itself where a group holds only one, however deeply wrapped."""
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
        """End it: each wait goes on for its own grace, and no longer."""
        self.is_over = True
        now = trio.current_time()
        for scope, grace in self._waiting.items():
            scope.deadline = now + grace

    @contextmanager
    def cancel_after_end(self, grace: float) -> Generator[trio.CancelScope, None, None]:
        """Wait in here while the manager is there, and for some seconds after that."""
        with trio.CancelScope() as scope:
            if self.is_over:
                scope.deadline = trio.current_time() + grace
            self._waiting[scope] = grace
            try:
                yield scope
            finally:
                del self._waiting[scope]
