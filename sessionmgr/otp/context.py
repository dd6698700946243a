"""Current child: the context variable that holds the child for which a task works."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from trio.lowlevel import Task, current_task

from sessionmgr.otp.errors import NotInActor

if TYPE_CHECKING:
    from sessionmgr.otp.child_task import ChildTask

CURRENT_CHILD: Final[ContextVar[ChildTask | None]] = ContextVar(
    "sessionmgr.otp.context", default=None
)


def current_child() -> ChildTask | None:
    """Return the child for which the running task works; None outside of any.

    A task of a nursery which the child opened in a handler counts, because the handler waits for
    it. A task that merely inherited the child's context does not.
    """
    record = CURRENT_CHILD.get()
    if record is None:
        return None
    task: Task | None = current_task()
    while task is not None and task is not record.task:
        task = None if task.parent_nursery is None else task.parent_nursery.parent_task
    return None if task is None else record


def require_child(what: str, instead: str) -> ChildTask:
    """Return the child for which the running task works.

    Raises:
        NotInActor: The task works for no child.
    """
    record = current_child()
    if record is None:
        raise NotInActor(what, instead)
    return record
