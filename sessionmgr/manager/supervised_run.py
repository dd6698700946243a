"""A run with its supervision: what starts, interrupts, approves and ends its task.

`RunState` declares these methods and the modules that implement them take a `RunState`: this class
joins them, so that no module imports one that imports it.
"""

from __future__ import annotations

from sessionmgr.manager import approvals, shutdown
from sessionmgr.manager.run_state import RunState


class SupervisedRun(RunState):
    """The state of one run, as the manager makes it."""

    __slots__ = ()

    run_adapter = shutdown.run_adapter
    interrupt = shutdown.interrupt_task
    ask = approvals.request_approval
    begin_task_end = shutdown.begin_task_end
    cut_task = shutdown.cut_task
