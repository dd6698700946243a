"""The end of a run: interrupt, grace, cut, abandon, and all its time limits.

Each phase of the end has a limit:

- STOPPING, the run was ended by another than its provider: the adapter interrupts it, and its task
  has the grace (the `close` timeout) to return. Without a way to interrupt, or if that fails, the
  task is cut at once.
- STOPPING, the provider has ended the run: its task has the grace from the storing of the end.
- CUT, the task was cancelled: it has `UNWINDING` seconds after the grace, or after an end of its
  provider another grace, to leave. Then it is abandoned: the run is OVER without its task.

All of this is synchronous and passes every queue, so it works while the store hangs. The timer task
(`timeouts`) looks at `due` and calls `time_is_up`.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final, cast

import trio

from sessionmgr.adapter.adapter import Interrupt
from sessionmgr.adapter.run_control import Stop
from sessionmgr.errors import MailboxFull, OtpError, RunCancelled, RunCrashed
from sessionmgr.model import Cause
from sessionmgr.otp import Run

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessionmgr.adapter.adapter import ProviderAdapter
    from sessionmgr.adapter.run_context import RunContext
    from sessionmgr.manager.clocks import Clocks
    from sessionmgr.manager.run_state import RunState
    from sessionmgr.otp import TaskSupervisor

UNWINDING: Final = 0.25
"""Seconds that a task which was cut has to leave, beyond the grace."""


class Shutdown:
    """The task of one run, and how it is ended."""

    __slots__ = (
        "_abandon_at",
        "_interruption",
        "_is_cut",
        "_is_noted",
        "_played",
        "_run",
        "_task",
        "context",
        "due",
        "recall",
    )

    def __init__(self, run: RunState) -> None:
        self._run: Final = run
        self._task: Run[None] | None = None
        """The task, once the adapter has launched it."""
        self._played: tuple[ProviderAdapter, TaskSupervisor] | None = None
        """The adapter that plays it, and the nursery of run tasks, while it is played."""
        self._interruption: Run[None] | None = None
        self.context: RunContext | None = None
        """The run as the adapter to which its start was sent sees it."""
        self.recall: Callable[[], None] | None = None
        """Takes its start back; None once the adapter has launched the task."""
        self.due = inf
        """When the time of the present phase is up, by trio's clock."""
        self._abandon_at = inf
        self._is_cut = False
        """Whether the task was cancelled."""
        self._is_noted = False
        """Whether the record says that it did not end in time."""

    # --- the task --------------------------------------------------------------------------------

    async def play(
        self, adapter: ProviderAdapter, context: RunContext, beside: TaskSupervisor
    ) -> None:
        """Be the run's task: call the adapter's `run`, and report the end. Its errors propagate.

        `beside` starts the task that interrupts the run: few runs need one, and a nursery for it
        would be a tenth of the cost of a run.
        """
        self._played = (adapter, beside)
        if not self._run.is_on:  # it was ended just after its start
            self._interrupt_or_cut()
        try:
            await self._play(adapter, context)
        except BaseException as error:
            self._run.task_ended(self._crash_of(error))
            raise
        self._run.task_ended(None)

    async def _play(self, adapter: ProviderAdapter, context: RunContext) -> None:
        try:
            await adapter.run(context)
        except BaseException:
            await self._end_interruption()  # shielded  # noqa: ASYNC102
            raise
        crash = await self._end_interruption()
        if crash is not None:
            raise crash

    async def _end_interruption(self) -> BaseException | None:
        """End the interruption with the task; return the exception of its crash."""
        self._played = None  # from now on there is nothing to interrupt
        if self._interruption is None:
            return None
        self._interruption.cancel()
        with trio.CancelScope(shield=True):  # noqa: ASYNC912  # its errors are waited for as well
            try:
                await self._interruption.result()
            except RunCancelled:
                return None
            except RunCrashed as crash:
                return crash.__cause__
        return None

    def _crash_of(self, error: BaseException) -> BaseException | None:
        """Return what ended the task; None if that was its cut alone."""
        if not self._is_cut:
            return _the_one(error)
        if isinstance(error, BaseExceptionGroup):
            rest = cast("BaseExceptionGroup[BaseException]", error).split(trio.Cancelled)[1]
            return None if rest is None else _the_one(rest)
        return None if isinstance(error, trio.Cancelled) else error

    def launched(self, task: Run[None]) -> None:
        """Note that the adapter has launched it."""
        self._task, self.recall = task, None
        self._run.launched()

    # --- its end, step by step -------------------------------------------------------------------

    def begin(self) -> None:
        """End the task of a run that another than its provider has ended."""
        self.due = self._run.stopped_at + self._run.grace
        self._abandon_at = self.due + UNWINDING
        recall, self.recall = self.recall, None
        if recall is None:
            self._interrupt_or_cut()
        else:
            recall()

    def begin_after_end(self) -> None:
        """Limit the time that the task has left after its provider's end was stored."""
        if not self._run.gone.is_set():
            self.due = trio.current_time() + self._run.grace
            self._abandon_at = self.due + self._run.grace

    def _interrupt_or_cut(self) -> None:
        if self._played is None:
            return  # its task has not begun, and asks again when it does; or it is leaving
        adapter = self._played[0]
        if not (adapter.can_interrupt() and adapter.ref.alive):
            self.cut()  # or its branch of the tree is going down, and takes the run with it
            return
        try:
            adapter.ref.cast(Interrupt(self))
        except MailboxFull:
            self.cut()

    def interrupt(self) -> None:
        """Start the task that asks the provider to end the run, if the run is still on."""
        if self._played is None or self.context is None:
            return
        adapter, beside = self._played
        try:
            self._interruption = beside.launch(Run(self._interrupt, (adapter, self.context), None))
        except OtpError:  # its branch of the tree is going down, and takes the run with it
            self.cut()

    async def _interrupt(self, adapter: ProviderAdapter, context: RunContext) -> None:
        try:
            await adapter.interrupt(context)  # `run` reads on, and returns when it is done
        except Exception:
            self.cut()
            raise

    def time_is_up(self) -> None:
        """End the present phase: cut the task, or abandon it if that was done."""
        run, self.due = self._run, inf
        if not run.is_launched:
            run.never_began("")
        elif run.cut():
            self._note()
            self._cancel()
        elif run.abandon():
            self._note()
            run.live.commands.task_abandoned(run)

    def cut(self) -> None:
        """Cancel the task now, unless that was done; one that was not launched will not be."""
        recall, self.recall = self.recall, None
        if recall is not None:
            recall()
        elif not self._run.is_launched:
            self._run.drop()
        elif self._run.cut():
            self._cancel()

    def _cancel(self) -> None:
        # By its place in the nursery: a scope of its own would cost a tenth of a run at rest.
        self._is_cut = True
        if self._task is not None:
            self._task.cancel()
        if self._interruption is not None:
            self._interruption.cancel()
        self.due = self._abandon_at

    def _note(self) -> None:
        """Have the record say, once, that the task did not end within the grace."""
        run = self._run
        if not self._is_noted and run.stop is not None:
            self._is_noted = True
            run.note_stall("close", run.grace, ending=run.stop.cause.value)


async def wait_until_gone(run: RunState) -> None:
    """Wait until the task of a run that has ended is gone, for at most the grace."""
    if not run.gone.is_set():
        with trio.move_on_after(run.grace):
            await run.gone.wait()


async def wait_until_ended(run: RunState) -> None:
    """Wait, shielded, until the end of a run that is being ended is stored.

    That is as long as its task has to leave, and the store to come back.
    """
    if run.ended.is_set():  # as it usually is, and a scope costs more than the rest
        await trio.lowlevel.cancel_shielded_checkpoint()
        return
    store = run.clocks.of("store") or inf
    with trio.move_on_after(2 * run.grace + store, shield=True):
        await run.ended.wait()


async def end_all(runs: dict[str, RunState], clocks: Clocks) -> None:
    """End all runs, because the manager goes down, and wait, shielded, until that is stored."""
    with trio.move_on_after(3 * clocks.of("close") + clocks.of("store"), shield=True):
        await _end_all(runs)


async def _end_all(runs: dict[str, RunState]) -> None:
    while runs:
        ending = list(runs.values())
        for run in ending:
            run.end(Stop(cause=Cause.SHUTDOWN, detail="the manager is going down"))
        for run in ending:
            await run.ended.wait()
            await run.gone.wait()
            runs.pop(run.id, None)
    await trio.lowlevel.checkpoint()


def _the_one(error: BaseException) -> BaseException:
    """Return the exception itself where a group holds only one, however deeply wrapped."""
    if isinstance(error, BaseExceptionGroup):
        inner = list(cast("BaseExceptionGroup[BaseException]", error).exceptions)
        if len(inner) == 1:
            return _the_one(inner[0])
        return cast("BaseException", error)
    return error
