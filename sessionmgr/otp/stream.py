"""Stream of the results of many tasks, of which a limited number run at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, Generic, Self, TypeVar

import trio
from outcome import Error
from trio.lowlevel import checkpoint_if_cancelled, enable_ki_protection

from sessionmgr.otp.errors import TaskCrashed
from sessionmgr.otp.task_handle import TaskHandle

if TYPE_CHECKING:
    from types import TracebackType

T = TypeVar("T")
Item = TypeVar("Item")


class Stream(Generic[T]):
    """An `async with` block and, in it, an async iterator of results.

    It owns no task but those of the calls: the iterating task takes items and starts calls. So a
    slow consumer slows the production down, and at most as many results wait for it as calls may
    run at once.
    """

    def __init__(
        self,
        launch: Callable[[TaskHandle[T]], TaskHandle[T]],
        fn: Callable[[Item], Awaitable[T]],
        items: Iterable[Item],
        max_concurrency: int,
        ordered: bool,
        return_exceptions: bool,
    ) -> None:
        if max_concurrency < 1:
            raise ValueError(f"max_concurrency={max_concurrency}: must be at least 1")
        self._launch = launch
        self._runs_to_be: Iterator[TaskHandle[T]] = (
            TaskHandle(fn, (item,), None, self._wake_consumer) for item in items
        )
        self._limit: Final = max_concurrency
        self._ordered = ordered
        self._return_exceptions = return_exceptions
        # Calls that run, or that ended and whose result was not yet returned, in item order.
        self._runs: deque[TaskHandle[T]] = deque()
        self._running = 0
        self._exhausted = False
        self._opened = False
        self._bell = trio.Event()

    async def __aenter__(self) -> Self:
        await trio.lowlevel.checkpoint()
        self._opened = True
        return self

    @enable_ki_protection
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._exhausted = True
        # Bounded by the tasks: a cancelled one ends, unless it shields itself.
        with trio.CancelScope(shield=True):  # noqa: ASYNC912  # there may be no runs
            for run in self._runs:
                run.cancel()
            for run in self._runs:
                await run.ref.wait()
        self._runs.clear()
        if error is None:
            await checkpoint_if_cancelled()  # noqa: ASYNC102  # nothing is lost by it

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        """Return the next result, and start further calls while there is room."""
        if not self._opened:
            raise RuntimeError("use a stream inside its block: async with tasks.stream(...)")
        await trio.lowlevel.checkpoint()
        while True:
            self._start_more()
            run = self._next_ended()
            if run is not None:
                self._runs.remove(run)
                # Wake other readers, which may wait for a result that is now taken.
                self._bell.set()
                return self._result_of(run)
            if not self._runs:
                raise StopAsyncIteration
            if self._bell.is_set():
                self._bell = trio.Event()
            await self._bell.wait()

    def _start_more(self) -> None:
        while (
            not self._exhausted
            and self._running < self._limit
            and len(self._runs) < 2 * self._limit
        ):
            run = next(self._runs_to_be, None)
            if run is None:
                self._exhausted = True
                return
            self._launch(run)
            self._runs.append(run)
            self._running += 1

    def _next_ended(self) -> TaskHandle[T] | None:
        if self._ordered:
            return self._runs[0] if self._runs and self._runs[0].done else None
        return next((run for run in self._runs if run.done), None)

    def _result_of(self, run: TaskHandle[T]) -> T:
        # Without a checkpoint, so that a cancelled reader loses no result.
        outcome = run.outcome
        assert outcome is not None
        error = outcome.error if isinstance(outcome, Error) else None
        if self._return_exceptions and isinstance(error, TaskCrashed):
            return error  # type: ignore[return-value]  # T says so, see the overloads
        return outcome.unwrap()

    def _wake_consumer(self) -> None:
        self._running -= 1
        self._bell.set()
