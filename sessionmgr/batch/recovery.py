"""Recovery of the outcome of an attempt whose host or process has died."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.batch.errors import BatchBusy
from sessionmgr.batch.host import AttemptResult
from sessionmgr.batch.in_process_host import is_session_resumable
from sessionmgr.batch.restart import has_side_effects
from sessionmgr.manager import FOLLOWS, describe_holder
from sessionmgr.model import TERMINAL
from sessionmgr.store import LeaseHeld, UnknownId

if TYPE_CHECKING:
    from collections.abc import Collection

    from sessionmgr.manager import Manager
    from sessionmgr.model import Run

LOOK_EVERY: Final = 0.25
PATIENCE: Final = 120.0
"""Seconds after which the lease of a dead process has certainly expired."""


async def recover_attempt(
    manager: Manager, job: str, number: int, *, session: str, others: Collection[str]
) -> AttemptResult | None:
    """Return how an attempt ended; None if it never started.

    Args:
        manager: The manager, whose store has the attempt's session.
        job: The id of the job.
        number: The number of the attempt.
        session: The session of the attempt.
        others: The runs of the job's other attempts.

    Raises:
        BatchBusy: Another process still runs the attempt.
    """
    runs = [run for run in await _ended_runs(manager, session) if run.id not in others]
    for run in runs:  # newest first
        if FOLLOWS not in run.metadata:  # a follow-up is not an attempt
            return AttemptResult(
                job=job,
                attempt=number,
                result=run.result(),
                resumable=is_session_resumable(manager, run),
                side_effects=any(map(has_side_effects, runs)),
            )
    return None


async def _ended_runs(manager: Manager, session: str) -> list[Run]:
    """Return the runs of a session, as soon as all of them have ended."""
    deadline = trio.current_time() + PATIENCE
    while True:
        try:
            runs = await manager.settled(session)
        except UnknownId:
            return []
        except LeaseHeld as error:
            if trio.current_time() > deadline:
                left = error.expires - int(1000 * manager.now())
                raise BatchBusy(session, describe_holder(error.holder, left)) from error
        else:
            if all(run.status in TERMINAL for run in runs):
                return runs
        await trio.sleep(LOOK_EVERY)
