"""A run with its supervision: the functions that start, interrupt, approve and end its task.

`RunState` declares these methods, and the modules that implement them import `RunState`. This class
joins the two without a cycle of imports.
"""

from __future__ import annotations

from sessionmgr.manager import approvals, shutdown
from sessionmgr.manager.run_state import RunState


class SupervisedRun(RunState):
    """The state of a run with its supervision. The manager makes only these."""

    __slots__ = ()

    run_adapter = shutdown.run_adapter
    interrupt = shutdown.interrupt_task
    ask = approvals.request_approval
    begin_task_end = shutdown.begin_task_end
    cut_task = shutdown.cut_task
