"""Outer nursery of a supervisor used as a block, and the exceptions that leave the block."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import trio
from trio.lowlevel import Abort, enable_ki_protection, reschedule, wait_task_rescheduled

from sessionmgr.otp.call_deadlines import DeadlineTable
from sessionmgr.otp.child_spec import ChildSpec
from sessionmgr.otp.child_task import ChildTask
from sessionmgr.otp.crash_boundary import run_child
from sessionmgr.otp.errors import SupervisorNotRunning
from sessionmgr.otp.exit_reason import SHUTDOWN, cause_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class RootNursery:
    """Outer nursery of a supervisor that is used as a block."""

    name = ""

    def __init__(
        self, name: str, run: Callable[[ChildTask], Awaitable[None]], supervisor: object
    ) -> None:
        self.deadlines = DeadlineTable()
        self._supervisor_name = name
        self._manager = trio.open_nursery()
        self._nursery: trio.Nursery | None = None
        self._entering: trio.lowlevel.Task | None = None
        self._leaving = False
        spec: ChildSpec[object] = ChildSpec(
            kind="supervisor",
            target=run,
            label=name,
            body=run,
            supervisor=supervisor,
        )
        self._record = ChildTask(spec, name, self)

    @enable_ki_protection
    async def enter(self) -> None:
        """Start the supervisor and wait until it is up."""
        self._nursery = await self._manager.__aenter__()
        try:
            self._nursery.start_soon(self.deadlines.run, name="sessionmgr.otp deadlines")
            self._nursery.start_soon(run_child, self._record)
            self._entering = trio.lowlevel.current_task()
            await wait_task_rescheduled(self._abort_wait)
        except BaseException as error:  # noqa: ASYNC103  # `leave` says whether it goes on
            if not await self.close(error):  # noqa: ASYNC102  # shielded in there
                raise
        else:
            if self._record.reason is None:
                return
            await self.close(None)
        raise SupervisorNotRunning(
            self._supervisor_name, "already stopped, before its start was complete"
        )

    def child_ready(self, record: ChildTask) -> None:
        """Handle that the supervisor is up."""
        self._wake_starter()

    def child_exited(self, record: ChildTask) -> None:
        """Handle that the supervisor has ended: end the body as well."""
        self._wake_starter()
        # A body that has ended is not cancelled: trio would copy the group that it may raise.
        if not self._leaving and self._nursery is not None:
            self._nursery.cancel_scope.cancel()

    def _wake_starter(self) -> None:
        task, self._entering = self._entering, None
        if task is not None:
            reschedule(task)

    def _abort_wait(self, _raise_cancel: Callable[[], None]) -> Abort:
        self._entering = None
        return Abort.SUCCEEDED

    @enable_ki_protection
    async def close(self, error: BaseException | None) -> bool:
        """Stop the supervisor, and return whether the body's `error` is suppressed."""
        self._leaving = True
        outcome = error
        try:
            with trio.CancelScope(shield=True):
                self._record.request_stop(SHUTDOWN)
                await self._record.wait_ended()
        except BaseException as interruption:  # noqa: ASYNC103, BLE001  # it leaves below
            # A second Ctrl-C: kill at once. The nursery below still waits for all tasks.
            outcome = interruption
            self._record.kill()
        self.deadlines.close()
        outcome = await self._close_nursery(outcome)
        failure = cause_of(self._record.reason) if self._record.reason is not None else None
        if isinstance(failure, Exception):
            outcome = _combine_failures(outcome, failure)
        if outcome is None or outcome is error:
            return outcome is None
        raise outcome

    async def _close_nursery(self, outcome: BaseException | None) -> BaseException | None:
        # Only a cancel is passed to the nursery. Other errors bypass it, because it would copy the
        # groups among them.
        own = None if outcome is None or _is_cancelled(outcome) else outcome
        given = outcome if own is None else None
        try:
            if await self._manager.__aexit__(None if given is None else type(given), given, None):
                given = None
        except BaseExceptionGroup as group:
            given = unwrap_group(group)
        if own is None or given is None or _is_cancelled(given):
            return given if own is None else own
        return BaseExceptionGroup("a supervisor was interrupted, and its body failed", [given, own])


def _is_cancelled(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return group.subgroup(trio.Cancelled) is not None
    return isinstance(error, trio.Cancelled)


def _combine_failures(outcome: BaseException | None, failure: Exception) -> BaseException:
    """Return the exception that leaves the block of a supervisor that has given up."""
    if outcome is None or isinstance(outcome, trio.Cancelled):
        # A cancelled body has not failed.
        return failure
    if isinstance(outcome, Exception):
        return ExceptionGroup("a supervisor gave up, and its body failed", [failure, outcome])
    # Callers do not look for Ctrl-C and the like in a group. The log has the give-up.
    return outcome


def unwrap_group(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Remove the nursery's group if it wraps one exception only.

    A cancel beside another exception is dropped; several cancels are equivalent.
    """
    cancelled, rest = group.split(trio.Cancelled)
    # A split copies nested groups, so use its result only if there was something to split.
    kept = group if cancelled is None or rest is None else rest
    if rest is None or len(kept.exceptions) == 1:
        return kept.exceptions[0]
    return kept
