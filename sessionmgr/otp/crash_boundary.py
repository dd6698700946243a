"""Crash boundary: the task of every child, and the only place that catches its crash."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from trio.lowlevel import (
    Abort,
    disable_ki_protection,
    enable_ki_protection,
    wait_task_rescheduled,
)

from sessionmgr.otp import report
from sessionmgr.otp.context import CURRENT_CHILD
from sessionmgr.otp.exit_reason import KILLED, NORMAL, Crashed, ExitReason
from sessionmgr.otp.message import Stop

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sessionmgr.otp.child_task import ChildTask


@enable_ki_protection
async def run_child(record: ChildTask) -> None:
    """Run one incarnation from its first step to its last: the task of every child.

    Ctrl-C is blocked in this function and allowed in the bodies that it runs: a child without
    `finish` would be waited for without end.
    """
    record.task = trio.lowlevel.current_task()
    CURRENT_CHILD.set(record)
    reason: ExitReason = KILLED
    try:
        try:
            if record.spec.prepare is not None and record.stop_reason is None:
                # An idle actor needs no scope: it is woken, not cancelled. That saves a fifth of
                # its start and more of its stop.
                record.spec.prepare(record)
                while not record.has_work:
                    record.parked = True
                    await wait_task_rescheduled(_refuse_cancel)
            if record.stop_reason is None:
                with trio.CancelScope(shield=True) as record.scope:
                    await record.spec.body(record)
            reason = record.stop_reason or NORMAL
        except Stop as stop:
            reason = stop.reason
        except Exception as error:
            reason = Crashed(error)
        if record.terminate_callback is not None and not record.killed:
            reason = await _call_terminate(record, record.terminate_callback, reason)
        elif record.killed and not isinstance(reason, Crashed):
            reason = KILLED
    except BaseException as error:
        reason = Crashed(error)
        raise
    finally:
        record.finish(reason)


def _refuse_cancel(_raise_cancel: Callable[[], None]) -> Abort:
    # The wake-up is certain: a supervisor stops or kills every child before it leaves its
    # nursery, whatever happens to the supervisor.
    return Abort.FAILED


async def _call_terminate(
    record: ChildTask, farewell: Callable[[ExitReason], Awaitable[None]], reason: ExitReason
) -> ExitReason:
    # An actor that ends by itself has the same time as one that is stopped.
    deadline = min(record.deadline, trio.current_time() + record.spec.terminate_timeout)
    try:
        with trio.CancelScope(shield=True, deadline=deadline) as grace:
            record.terminate_scope = grace
            await _with_interrupts(farewell, reason)
    except Stop as stop:
        return reason if isinstance(reason, Crashed) else stop.reason
    except Exception as error:
        if isinstance(reason, Crashed):
            report.terminate_failed(record, error)
            return reason
        return Crashed(error)
    return KILLED if grace.cancelled_caught and not isinstance(reason, Crashed) else reason


@disable_ki_protection
async def _with_interrupts(
    farewell: Callable[[ExitReason], Awaitable[None]], reason: ExitReason
) -> None:
    await farewell(reason)
