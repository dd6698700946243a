"""Approve functions for programs that do not run on trio, and the threads that call them.

A plain function is called in the thread that waits for the run, in `result()` or iteration. With a
`call_approve` hook, the hook calls every function, for example in an asyncio loop.
"""

from __future__ import annotations

import inspect
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import trio

from sessionmgr.adapter import ApprovalRequest, Decision, Deny
from sessionmgr.manager import ArgumentTypeInvalid, ArgumentValueInvalid

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from sessionmgr.adapter import Approve

T = TypeVar("T")

PortalApprove: TypeAlias = Callable[[ApprovalRequest], Decision | Awaitable[Decision]]
"""A plain or a coroutine function that answers an agent's request."""

AsyncApprove: TypeAlias = "Callable[[ApprovalRequest], Coroutine[object, None, Decision]]"

CallApprove: TypeAlias = Callable[[AsyncApprove, ApprovalRequest], Future[Decision]]
"""A hook that runs an approve function in a loop of the program, and returns its future answer."""


def approver(
    call: str, approve: PortalApprove | None, hook: CallApprove | None, *, waits: bool
) -> tuple[Approve | None, ApprovalQueue | None]:
    """Return the approve function for the manager, and the queue of its unanswered requests.

    There is a queue only if a waiting thread answers the requests; `waits` says whether the call
    has such a thread.

    Raises:
        ArgumentTypeInvalid: It is not a function, or a coroutine function without a hook.
        ArgumentValueInvalid: It is a plain function, and no thread will wait.
    """
    if approve is None:
        return None, None
    if not callable(approve):
        raise ArgumentTypeInvalid(call, "approve", approve, "a function that takes a request")
    if hook is not None:
        return _by_hook(approve, hook), None
    if _is_async(approve):
        raise ArgumentTypeInvalid(
            call,
            "approve",
            approve,
            "a plain function; for a coroutine function, open the portal with call_approve=, such "
            "as open_portal(call_approve=lambda function, request: "
            "asyncio.run_coroutine_threadsafe(function(request), loop))",
        )
    if not waits:
        raise ArgumentValueInvalid(call, "approve", approve, NO_THREAD)
    queue = ApprovalQueue(approve)
    return queue.ask, queue


NO_THREAD: Final = (
    "no thread waits in which it could be called: use ask(), or start() and result(), or open the "
    "portal with call_approve="
)


def _is_async(function: object) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004  # an object with an async __call__
    )


def _by_hook(approve: PortalApprove, hook: CallApprove) -> Approve:
    async def in_their_loop(request: ApprovalRequest) -> Decision:
        answer = approve(request)
        return await answer if isinstance(answer, Awaitable) else answer

    async def ask(request: ApprovalRequest) -> Decision:
        return await wait_for(hook(in_their_loop, request))

    return ask


async def wait_for(future: Future[T]) -> T:
    """Wait in trio for another thread's future; cancelling the wait cancels the future."""
    token = trio.lowlevel.current_trio_token()
    done = trio.Event()

    def wake(_: Future[T]) -> None:
        with suppress(trio.RunFinishedError):
            token.run_sync_soon(done.set)

    future.add_done_callback(wake)
    try:
        await done.wait()
    except trio.Cancelled:
        future.cancel()
        raise
    return future.result(0)


class ApprovalQueue:
    """Approval requests of a session's runs; threads that wait for those runs answer them."""

    def __init__(self, approve: PortalApprove) -> None:
        self.approve: Final = approve
        self._changed: Final = threading.Condition()
        self._requests: Final[deque[tuple[ApprovalRequest, Future[Decision]]]] = deque()

    async def ask(self, request: ApprovalRequest) -> Decision:
        """Enqueue a request, and wait for its answer."""
        answer: Future[Decision] = Future()
        with self._changed:
            self._requests.append((request, answer))
            self._changed.notify_all()
        return await wait_for(answer)

    def wait(self, future: Future[T], timeout: float | None) -> None:
        """Answer requests in this thread until the future is done or the timeout expires."""
        future.add_done_callback(self._wake)
        ends = None if timeout is None else time.monotonic() + timeout
        while True:
            with self._changed:
                left = None if ends is None else max(0.0, ends - time.monotonic())
                self._changed.wait_for(lambda: future.done() or self._requests, left)
                if future.done() or not self._requests:
                    return
                request, answer = self._requests.popleft()
            self._answer(request, answer)

    def _wake(self, _: Future[T]) -> None:
        with self._changed:
            self._changed.notify_all()

    def _answer(self, request: ApprovalRequest, answer: Future[Decision]) -> None:
        if not answer.set_running_or_notify_cancel():
            return  # withdrawn, or its time was up
        try:
            decision = self.approve(request)
        except Exception as error:  # noqa: BLE001  # the manager records it and denies
            answer.set_exception(error)
        except BaseException:
            answer.set_result(Deny(reason="the approve function was interrupted", by="default"))
            raise
        else:
            with suppress(InvalidStateError):
                # The manager refuses anything but a decision, such as an awaitable.
                answer.set_result(decision)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
