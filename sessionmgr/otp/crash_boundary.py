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
async def run_child(life: ChildTask) -> None:
    """Run one incarnation from its first step to its last: the task of every child.

    Ctrl-C is blocked in this function and allowed in the bodies that it runs: a child without
    `finish` would be waited for without end.
    """
    life.task = trio.lowlevel.current_task()
    CURRENT_CHILD.set(life)
    reason: ExitReason = KILLED
    try:
        try:
            if life.spec.prepare is not None and life.stop_reason is None:
                # An idle actor needs no scope: it is woken, not cancelled. That saves a fifth of
                # its start and more of its stop.
                life.spec.prepare(life)
                while not life.has_work:
                    life.parked = True
                    await wait_task_rescheduled(_refuse_cancel)
            if life.stop_reason is None:
                with trio.CancelScope(shield=True) as life.scope:
                    await life.spec.body(life)
            reason = life.stop_reason or NORMAL
        except Stop as stop:
            reason = stop.reason
        except Exception as error:
            reason = Crashed(error)
        if life.terminate_callback is not None and not life.killed:
            reason = await _call_terminate(life, life.terminate_callback, reason)
        elif life.killed and not isinstance(reason, Crashed):
            reason = KILLED
    except BaseException as error:
        reason = Crashed(error)
        raise
    finally:
        life.finish(reason)


def _refuse_cancel(_raise_cancel: Callable[[], None]) -> Abort:
    # The wake-up is certain: a supervisor stops or kills every child before it leaves its
    # nursery, whatever happens to the supervisor.
    return Abort.FAILED


async def _call_terminate(
    life: ChildTask, farewell: Callable[[ExitReason], Awaitable[None]], reason: ExitReason
) -> ExitReason:
    # An actor that ends by itself has the same time as one that is stopped.
    deadline = min(life.deadline, trio.current_time() + life.spec.terminate_timeout)
    try:
        with trio.CancelScope(shield=True, deadline=deadline) as grace:
            life.terminate_scope = grace
            await _with_interrupts(farewell, reason)
    except Stop as stop:
        return reason if isinstance(reason, Crashed) else stop.reason
    except Exception as error:
        if isinstance(reason, Crashed):
            report.terminate_failed(life, error)
            return reason
        return Crashed(error)
    return KILLED if grace.cancelled_caught and not isinstance(reason, Crashed) else reason


@disable_ki_protection
async def _with_interrupts(
    farewell: Callable[[ExitReason], Awaitable[None]], reason: ExitReason
) -> None:
    await farewell(reason)
