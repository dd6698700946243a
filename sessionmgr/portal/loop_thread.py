"""A thread that runs a trio loop with one open manager.

Other threads submit work to the loop and get a `concurrent.futures.Future` for it. Such a future
stays pending until it has its result, because a running one cannot be cancelled; cancelling it
cancels the work. A pending future fails with `PortalClosed` when the thread ends.

The thread is not a daemon: the interpreter waits for it at exit, so that the manager can end its
processes. If the program has not closed the portal by then, `exit_watch` does.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import outcome
import trio

from sessionmgr.portal import exit_watch
from sessionmgr.portal.errors import PortalClosed, PortalDeadlock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sessionmgr.manager import Manager

T = TypeVar("T")

log: Final = logging.getLogger("sessionmgr.portal")


class LoopThread:
    """The thread of one portal, from `start` to `close`."""

    def __init__(self, manager: Manager) -> None:
        self.manager: Final = manager
        self._thread: Final = threading.Thread(target=self._run, name="sessionmgr-portal")
        self._opened: Final = threading.Event()
        self._ended: Final = threading.Event()
        self._lock: Final = threading.Lock()
        self._pending: Final[dict[object, tuple[str, Callable[[BaseException], None]]]] = {}
        """Futures without a result: their call, and how to fail them."""
        self.is_closed = False
        """Whether it refuses further calls."""
        self._token: trio.lowlevel.TrioToken | None = None
        self._calls: trio.Nursery | None = None
        self._stop: Final = trio.Event()
        self._failure: BaseException | None = None
        """The error that ended the loop before it was closed; the first `close` raises it."""

    # --- start and end, called by other threads ----------------------------------------------

    def start(self) -> None:
        """Start the thread, and wait until the manager is open.

        Raises:
            ManagerDown: The manager does not start; `__cause__` is the reason.
            StoreError: The store cannot be used.
        """
        self._thread.start()
        try:
            exit_watch.add(self._thread, self.request_stop)
            self._opened.wait()
        except BaseException:  # KeyboardInterrupt
            self.close()
            raise
        if self._token is None:
            self.close()

    def close(self, call: str = "close") -> None:
        """End all calls and runs, and wait for the thread; a second call does nothing.

        A KeyboardInterrupt during the wait is raised after it, because the manager is still ending
        processes. A second one ends the wait at once; the interpreter then waits for the thread.

        Raises:
            PortalDeadlock: The portal's own thread calls.
            ManagerDown: The manager stopped after repeated crashes; `__cause__` is the reason.
        """
        self.require_other_thread(call)
        interrupt: KeyboardInterrupt | None = None
        while not self._ended.is_set():
            try:
                self.request_stop()  # again after an interrupt, which may have struck within it
                # Not by `join`: Python 3.11 takes a thread for ended if its join is interrupted.
                self._ended.wait()
            except KeyboardInterrupt as error:
                if interrupt is not None:
                    raise
                interrupt = error
        self._thread.join()
        exit_watch.remove(self._thread)
        failure, self._failure = self._failure, None
        if interrupt is not None:
            raise interrupt
        if failure is not None:
            raise failure

    def request_stop(self) -> None:
        """Begin to end all calls and runs, without waiting for their end."""
        with self._lock:
            self.is_closed = True
        self.call_soon(self._stop.set)

    def require_other_thread(self, call: str) -> None:
        """Refuse a blocking call in the portal's own thread, where it would deadlock.

        Raises:
            PortalDeadlock: The portal's own thread calls.
        """
        if threading.current_thread() is self._thread:
            raise PortalDeadlock(call)

    # --- work --------------------------------------------------------------------------------

    def call_soon(self, function: Callable[[], object]) -> None:
        """Schedule a function in the loop, without waiting for it; do nothing once the loop ended.

        It must not raise: that would end the loop.
        """
        if self._token is not None:
            with suppress(trio.RunFinishedError):
                self._token.run_sync_soon(function)

    def submit(
        self,
        call: str,
        work: Callable[[], Awaitable[T]],
        *,
        undelivered: Callable[[T], object] | None = None,
    ) -> Future[T]:
        """Run an async function in the loop, and return the future of its result.

        If the future was cancelled just before the function returned, `undelivered` gets the
        result.

        Raises:
            PortalClosed: The portal is closed.
        """
        future: Future[T] = Future()
        scope = trio.CancelScope()
        with self._lock:
            if self.is_closed:
                raise PortalClosed(call) from self._failure
            self._pending[future] = (call, partial(_fail, future))
        future.add_done_callback(partial(self._is_done, scope))
        self.call_soon(partial(self._begin, work, future, scope, undelivered))
        return future

    def wait(self, call: str, future: Future[T], timeout: float | None = None) -> T:
        """Wait for a future; a timeout or an interrupt of the wait cancels the future.

        Raises:
            TimeoutError: The future has no result within `timeout` seconds.
            PortalDeadlock: The portal's own thread calls.
            PortalClosed: The portal was closed meanwhile.
        """
        try:
            self.require_other_thread(call)
            return future.result(timeout)
        except BaseException:
            future.cancel()
            raise

    def call(self, call: str, work: Callable[[], Awaitable[T]]) -> T:
        """Run an async function in the loop, and wait for its result."""
        self.require_other_thread(call)
        return self.wait(call, self.submit(call, work))

    def _is_done(self, scope: trio.CancelScope, future: Future[T]) -> None:
        """Forget a future that is done; if it was cancelled, cancel its work (done callback)."""
        with self._lock:
            self._pending.pop(future, None)
        if future.cancelled():
            future.set_running_or_notify_cancel()  # wakes concurrent.futures.wait and as_completed
            self.call_soon(scope.cancel)

    # --- in the thread -----------------------------------------------------------------------

    def _run(self) -> None:
        ended = outcome.capture(trio.run, self._main)
        with self._lock:
            self.is_closed = True
            if isinstance(ended, outcome.Error):
                self._failure = ended.error
        if isinstance(ended, outcome.Error) and self._opened.is_set():
            log.error("The manager of a portal failed. error=%s", ended.error)
        self._fail_pending()
        self._opened.set()
        self._ended.set()

    async def _main(self) -> None:
        async with self.manager, trio.open_nursery() as self._calls:
            self._token = trio.lowlevel.current_trio_token()
            self._opened.set()
            if self.is_closed:  # while it was opened
                return
            await self._stop.wait()
            self._fail_pending()
            self._calls.cancel_scope.cancel()

    def _fail_pending(self) -> None:
        with self._lock:
            pending = list(self._pending.values())
        for call, fail in pending:
            error = PortalClosed(call, during=True)
            error.__cause__ = self._failure
            fail(error)

    def _begin(
        self,
        work: Callable[[], Awaitable[T]],
        future: Future[T],
        scope: trio.CancelScope,
        undelivered: Callable[[T], object] | None,
    ) -> None:
        assert self._calls is not None
        if not future.done():
            with suppress(RuntimeError):  # the manager has crashed just now: the future fails later
                self._calls.start_soon(_serve, work, future, scope, undelivered)


async def _serve(
    work: Callable[[], Awaitable[T]],
    future: Future[T],
    scope: trio.CancelScope,
    undelivered: Callable[[T], object] | None,
) -> None:
    """Run the work of one call, and set its result or its error on the future."""
    with scope:
        match await outcome.acapture(work):
            case outcome.Value(value=value):
                try:
                    future.set_result(value)
                except InvalidStateError:  # cancelled in this moment by another thread
                    if undelivered is not None:
                        undelivered(value)
            case outcome.Error(error=trio.Cancelled() as cancelled):
                raise cancelled
            case outcome.Error(error=BaseExceptionGroup() as group):
                cancels, rest = group.split(trio.Cancelled)
                if rest is not None:
                    _fail(future, rest)
                if cancels is not None:
                    raise cancels
            case outcome.Error(error=error):
                _fail(future, error)


def _fail(future: Future[T], error: BaseException) -> None:
    with suppress(InvalidStateError):
        future.set_exception(error)
