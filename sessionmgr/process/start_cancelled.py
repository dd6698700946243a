"""Whether somebody will close what has begun."""

from __future__ import annotations

import math

import trio


def is_start_cancelled() -> bool:
    """Whether who started this task has been cancelled before it said that it had begun.

    A shielded task that only its closing ends must ask for it, after `task_status.started()`: trio
    tells nobody of a start that was cancelled in its midst, and keeps the task where it was.
    """
    return trio.current_effective_deadline() == -math.inf
