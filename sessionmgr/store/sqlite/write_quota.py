"""Write quota: limits the data that waits to be written."""

from __future__ import annotations

from collections import OrderedDict

from trio.lowlevel import (
    Abort,
    Task,
    checkpoint_if_cancelled,
    current_task,
    reschedule,
    wait_task_rescheduled,
)


class WriteQuota:
    """Quota of rows and bytes in progress; one write of any size is always admitted alone."""

    def __init__(self, rows: int, size: int) -> None:
        self.max_rows = rows
        self.max_size = size
        self.rows = 0
        self.size = 0
        self._waiting: OrderedDict[Task, tuple[int, int]] = OrderedDict()

    @property
    def waiting(self) -> int:
        """Number of tasks that wait for room."""
        return len(self._waiting)

    def _fits(self, rows: int, size: int) -> bool:
        if self.rows == 0:
            return True
        return self.rows + rows <= self.max_rows and self.size + size <= self.max_size

    def _occupy(self, rows: int, size: int) -> None:
        self.rows += rows
        self.size += size

    async def acquire(self, rows: int, size: int) -> None:
        """Wait, in order of arrival, until there is room for so much."""
        await checkpoint_if_cancelled()
        if not self._waiting and self._fits(rows, size):
            self._occupy(rows, size)
            return
        task = current_task()

        def abort(_: object) -> Abort:
            del self._waiting[task]
            self._admit()  # smaller writes behind this one may fit
            return Abort.SUCCEEDED

        self._waiting[task] = rows, size
        await wait_task_rescheduled(abort)

    def release(self, rows: int, size: int) -> None:
        """Release room, and admit waiting tasks."""
        self.rows -= rows
        self.size -= size
        self._admit()

    def _admit(self) -> None:
        while self._waiting:
            task, (rows, size) = next(iter(self._waiting.items()))
            if not self._fits(rows, size):
                return
            del self._waiting[task]
            self._occupy(rows, size)
            reschedule(task)
