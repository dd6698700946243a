"""Detection of a `nursery.start` that was cancelled."""

from __future__ import annotations

import math

import trio


def is_start_cancelled() -> bool:
    """Return whether `nursery.start` was cancelled before this task called `started()`.

    A shielded task that only its caller closes must check this after `task_status.started()`: trio
    does not report a start that was cancelled meanwhile, and the task stays in the old nursery.
    """
    return trio.current_effective_deadline() == -math.inf
