"""Handle of a run for programs that do not run on trio."""

from __future__ import annotations

import threading
from bisect import bisect_right
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, TypeVar

import msgspec

from sessionmgr.manager import ArgumentTypeInvalid, ArgumentValueInvalid
from sessionmgr.model import (
    TERMINAL_TYPES,
    AnyEvent,
    Event,
    RunResult,
    RunStatus,
    TextPieces,
    UnknownEvent,
)
from sessionmgr.portal.approver import NO_THREAD
from sessionmgr.portal.errors import PortalClosed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType
    from typing import Self

    from sessionmgr.manager import FollowUp, RunHandle
    from sessionmgr.portal.approver import ApprovalQueue
    from sessionmgr.portal.loop_thread import LoopThread

T = TypeVar("T")


class PortalFollowUp(msgspec.Struct, frozen=True):
    """The result of `append`: the state of the message, and the run that it belongs to.

    Attributes:
        state: `accepted`: the current turn has accepted it. `queued`: it is the prompt of `run`,
            the session's next run. `unknown`: the provider did not answer, and the message is not
            sent again.
        run: The run that the message belongs to.
    """

    state: Literal["accepted", "queued", "unknown"]
    run: PortalRun


class PortalRun:
    """One run of a portal; `Portal.start` returns it. Any thread may use it.

    The run continues whether or not a thread waits for it or reads its events. It ends with the
    portal at the latest. As a context manager it ends with its block:

    >>> with open_portal() as portal, portal.start("shell", "printf hello") as run:
    ...     print("".join(run.text()), run.result().status)
    hello completed
    """

    def __init__(self, loop: LoopThread, handle: RunHandle, queue: ApprovalQueue | None) -> None:
        self._loop: Final = loop
        self._handle: Final = handle
        self._queue: Final = queue
        """Requests that a thread answers while it waits for this run."""
        self._lock: Final = threading.Lock()
        self._future: Future[RunResult] | None = None
        self._page: Sequence[AnyEvent] = ()
        """The events that were read last for `next_event`."""

    def __repr__(self) -> str:
        return f"<run {self.id} in a portal: {self.status}>"

    def __enter__(self) -> Self:
        """Return the run; the end of the block cancels it."""
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Cancel the run if it is not over, and wait for its end."""
        self.cancel("its block was left" if exc is None else "its block was left by an exception")
        with suppress(PortalClosed):
            self.result()

    @property
    def id(self) -> str:
        """The id of the run."""
        return self._handle.id

    @property
    def session_id(self) -> str:
        """The id of the run's session."""
        return self._handle.session_id

    @property
    def status(self) -> RunStatus:
        """The stored status of the run."""
        return self._handle.status

    @property
    def handle(self) -> RunHandle:
        """The manager's own handle of this run, for `Portal.call`."""
        return self._handle

    # --- blocking calls ------------------------------------------------------------------------

    def result(self, timeout: float | None = None) -> RunResult:
        """Wait for the end of the run, and return its result. A failed run raises nothing.

        The approve function of `Portal.start` is called in this thread meanwhile.

        Args:
            timeout: The number of seconds to wait; None, the default, is no limit. The run
                continues after a timeout.

        Raises:
            TimeoutError: The run has not ended within `timeout` seconds.
            PortalClosed: The portal is closed, or was closed meanwhile.
            PortalDeadlock: A callback in the portal's own thread calls.

        >>> with open_portal() as portal:
        ...     portal.start("shell", "printf hello").result(timeout=60).text
        'hello'
        """
        self._loop.require_other_thread("result")
        return self._wait("result", self._result("result"), timeout)

    def __iter__(self) -> Iterator[AnyEvent]:
        """Iterate over all events; each iteration begins with the first one."""
        return self.events()

    def events(self, *, after: AnyEvent | None = None) -> Iterator[AnyEvent]:
        """Iterate over the events of the run, to the terminal one.

        Each event is stored before it is yielded. A slow reader delays nothing and holds one page
        of events. The approve function of `Portal.start` is called in this thread meanwhile.

        Args:
            after: An event of the run; the iteration begins with the next one. None, the default,
                begins with the first.

        Raises:
            ArgumentTypeInvalid: `after` is not an event.
            ArgumentValueInvalid: `after` is an event of another run.
            PortalClosed: The portal is closed, or was closed meanwhile.
            PortalDeadlock: A callback in the portal's own thread iterates.

        >>> with open_portal() as portal:
        ...     run = portal.start("shell", "printf hello")
        ...     [event.type for event in run.events()][-1]
        'run_completed'
        """
        self._require_own("events", after)
        self._loop.require_other_thread("events")
        return self._events(after)

    def _events(self, last: AnyEvent | None) -> Iterator[AnyEvent]:
        while last is None or last.type not in TERMINAL_TYPES:
            page = self._wait("events", self._submit_page(last))
            if not page:
                return
            yield from page
            last = page[-1]

    def text(self) -> Iterator[str]:
        """Iterate over the agent's text, piece by piece as it is streamed.

        A message that the provider does not stream is one piece.

        Raises:
            PortalClosed: The portal is closed, or was closed meanwhile.
            PortalDeadlock: A callback in the portal's own thread iterates.

        >>> with open_portal() as portal:
        ...     "".join(portal.start("shell", "printf hello").text())
        'hello'
        """
        pieces = TextPieces()
        for event in self.events():
            if piece := pieces.piece(event):
                yield piece

    def append(self, content: str) -> PortalFollowUp:
        """Send another message: into the current turn, or as the session's next run.

        Args:
            content: The text of the message.

        Returns:
            The state of the message, and the run that it belongs to: this one, or the next one,
            which has the same permission, options and approve function.

        Raises:
            StartRefused: The next run was refused.
            PortalClosed: The portal is closed, or was closed meanwhile.
            PortalDeadlock: A callback in the portal's own thread calls.

        >>> with open_portal() as portal:
        ...     run = portal.start("shell", "printf first")
        ...     run.append("printf second").run.result().text
        'second'
        """
        return self._loop.wait("append", self.submit_append(content))

    # --- calls that do not block ---------------------------------------------------------------

    def cancel(self, detail: str | None = None) -> None:
        """Begin to end the run, without waiting for it; do nothing if it is over.

        Args:
            detail: The reason, for the record. The default is None.

        Raises:
            ArgumentTypeInvalid: `detail` is not a str.

        >>> with open_portal() as portal:
        ...     run = portal.start("shell", "sleep 1000")
        ...     run.cancel("no longer needed")
        ...     run.result().status
        <RunStatus.CANCELLED: 'cancelled'>
        """
        if detail is not None:
            _require_text("cancel", "detail", detail)
        self._loop.call_soon(partial(self._handle.cancel, detail))

    @property
    def future(self) -> Future[RunResult]:
        """The future result of the run; `asyncio.wrap_future` awaits it.

        Cancelling it cancels the run: the future is cancelled at once, and the run ends
        within the `close` clock (5 s by default). The property always returns the same future.

        Raises:
            ArgumentValueInvalid: The run has a plain approve function, which needs a thread that
                waits in `result` or iterates.
            PortalClosed: The portal is closed.

        >>> with open_portal() as portal:
        ...     portal.start("shell", "printf hello").future.result().text
        'hello'
        """
        self._require_no_queue("future")
        with self._lock:
            if self._future is None:
                self._future = self._result("future")
                self._future.add_done_callback(self._cancel_with_future)
            return self._future

    def next_event(self, after: AnyEvent | None = None) -> Future[AnyEvent | None]:
        """Return a future of the event that follows `after`, or of None after the terminal event.

        The caller holds the position, so a cancelled future or a timeout neither loses nor repeats
        an event: call again with the last event that you have. Cancelling the future does not
        cancel the run.

        Args:
            after: The last event that the caller has; None, the default, asks for the first one.

        Raises:
            ArgumentTypeInvalid: `after` is not an event.
            ArgumentValueInvalid: `after` is an event of another run, or the run has a plain approve
                function, which needs a thread that waits in `result` or iterates.
            PortalClosed: The portal is closed.

        >>> with open_portal() as portal:
        ...     run = portal.start("shell", "printf hello")
        ...     event = run.next_event().result()
        ...     while event is not None:
        ...         last, event = event, run.next_event(after=event).result()
        ...     last.type
        'run_completed'
        """
        self._require_no_queue("next_event")
        self._require_own("next_event", after)
        at_hand = self._at_hand(after)
        if at_hand is not None or (after is not None and after.type in TERMINAL_TYPES):
            future: Future[AnyEvent | None] = Future()
            future.set_result(at_hand)
            return future
        return self._loop.submit("next_event", partial(self._next, after))

    def submit_append(self, content: str) -> Future[PortalFollowUp]:
        """Return the future of an `append`.

        Args:
            content: The text of the message.

        Raises:
            ArgumentTypeInvalid: `content` is not a str.
            PortalClosed: The portal is closed.
        """
        _require_text("append", "content", content)

        async def append() -> PortalFollowUp:
            return self._follow_up(await self._handle.append(content))

        return self._loop.submit("append", append)

    # --- within --------------------------------------------------------------------------------

    def _follow_up(self, sent: FollowUp) -> PortalFollowUp:
        if sent.run is self._handle:
            return PortalFollowUp(sent.state, self)
        return PortalFollowUp(sent.state, PortalRun(self._loop, sent.run, self._queue))

    def _result(self, call: str) -> Future[RunResult]:
        return self._loop.submit(call, self._handle.result)

    def _submit_page(self, after: AnyEvent | None) -> Future[Sequence[AnyEvent]]:
        return self._loop.submit("events", partial(self._read, after))

    async def _read(self, after: AnyEvent | None) -> Sequence[AnyEvent]:
        return await self._handle.events(after=after.seq if after else 0).batch()

    async def _next(self, after: AnyEvent | None) -> AnyEvent | None:
        self._page = page = await self._read(after)
        return page[0] if page else None

    def _at_hand(self, after: AnyEvent | None) -> AnyEvent | None:
        """Return the event that follows `after`, if the page that was read last has both."""
        page = self._page
        if after is None or not page or after.seq < page[0].seq:
            return None
        place = bisect_right(page, after.seq, key=lambda event: event.seq)
        return page[place] if place < len(page) else None

    def _wait(self, call: str, future: Future[T], timeout: float | None = None) -> T:
        """Wait for a future of this run, and answer the run's requests in this thread."""
        if self._queue is not None:
            try:
                self._queue.wait(future, timeout)
            except BaseException:  # KeyboardInterrupt
                future.cancel()
                raise
            timeout = 0
        return self._loop.wait(call, future, timeout)

    def _cancel_with_future(self, future: Future[RunResult]) -> None:
        if future.cancelled():
            self.cancel("its future was cancelled")

    def _require_no_queue(self, call: str) -> None:
        if self._queue is not None:
            raise ArgumentValueInvalid(call, "approve", self._queue.approve, NO_THREAD)

    def _require_own(self, call: str, after: object) -> None:
        if after is None:
            return
        if not isinstance(after, Event | UnknownEvent):
            raise ArgumentTypeInvalid(call, "after", after, "an event of this run")
        if after.session_id != self.session_id or after.run_id not in {None, self.id}:
            raise ArgumentValueInvalid(call, "after", after, f"it is no event of {self.id}")


def _require_text(call: str, name: str, value: object) -> None:
    if not isinstance(value, str):
        raise ArgumentTypeInvalid(call, name, value, "a str")
