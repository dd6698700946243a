"""The three pipes of a child, served at once, so that nobody waits for anybody who waits for him.

Whatever the child does first, it is written to and read from at the same time. Reading waits for
`room` only, between two reads: what is not read stays in the pipe and slows the child down.

The end of the child is not the end of its pipes, because a child of its own may hold them open.
What the child itself has written is in the pipe when it ends, and a pipe holds 1 MiB at most. So
from then on each reader has a `grace` of silence and 1 MiB, and who still holds the pipe after that
is reported. The grace is counted only while we read: a full store must not cost the last words.
Nor must a machine that stands still for a while: when patience is up, it is looked once more.
"""

from __future__ import annotations

import math
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec
import trio

from sessionmgr.process.outbox import Outbox
from sessionmgr.process.stderr_tail import StderrTail
from sessionmgr.wire import Line, LineDecoder

if TYPE_CHECKING:
    from trio.abc import ReceiveStream, SendStream

READ: Final = 64 * 1024
GRACE: Final = 2.0
DRAIN_BUDGET: Final = 1024 * 1024
TURNS: Final = 4
"""How often the scheduler goes round while we look whether there is anything to read."""


class PumpResult(msgspec.Struct, frozen=True, kw_only=True):
    """How the pipes of a child ended."""

    held: tuple[str, ...]
    """Which of stdout and stderr somebody still held open when we gave up."""
    unsent: int
    """How many bytes it did not take."""


class PipePump:
    """Serves the pipes of one child; `outbox` is what is written to it, `tail` its last complaints.

    `take` gets the lines of each read, in their order, and may be called with none: a read is a
    sign of life. It must not wait. `take_error` gets the lines of stderr likewise. `room` is
    awaited between two reads of what is taken; a stderr that nobody takes is never held up.
    """

    def __init__(
        self,
        take: Callable[[Sequence[Line]], None],
        *,
        take_error: Callable[[Sequence[Line]], None] | None = None,
        room: Callable[[], Awaitable[None]] | None = None,
        decoder: LineDecoder | None = None,
        outbox: Outbox | None = None,
        tail: StderrTail | None = None,
        grace: float = GRACE,
    ) -> None:
        self.outbox = outbox or Outbox()
        self.tail = tail or StderrTail()
        self.stdout_ended = trio.Event()
        """Set when no more comes from stdout; the child may live on, and hold stderr."""
        self._take = take
        self._take_error = take_error
        self._room = room
        self._decoder = decoder or LineDecoder()
        self._grace = grace

    async def run(
        self,
        *,
        stdin: SendStream | None,
        stdout: ReceiveStream,
        stderr: ReceiveStream,
        exited: Callable[[], Awaitable[object]],
    ) -> PumpResult:
        """Serve the pipes until stdout and stderr have ended, and close them.

        That may be before the child has: it can close both and live on. `exited` waits for its
        end. What a callback raises leaves in an exception group.
        """
        out = _PipeReader("stdout", stdout, self._decoder, self._take, self._room)
        complaints = LineDecoder(READ)  # a tail, not a protocol: nobody needs long ones
        room = None if self._take_error is None else self._room
        err = _PipeReader("stderr", stderr, complaints, self._take_error, room, self.tail)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._drain_after_exit, exited, (out, err))
                if stdin is not None:
                    nursery.start_soon(self.outbox.run, stdin)
                nursery.start_soon(err.run)
                await out.run()
                self.stdout_ended.set()
                await err.over.wait()
                nursery.cancel_scope.cancel()
        finally:
            await _close(stdout, stderr)  # shielded and bounded  # noqa: ASYNC102
        held = tuple(reader.name for reader in (out, err) if not reader.ended)
        return PumpResult(held=held, unsent=self.outbox.unsent)

    async def _drain_after_exit(
        self, exited: Callable[[], Awaitable[object]], readers: Sequence[_PipeReader]
    ) -> None:
        await exited()
        for reader in readers:
            reader.begin_draining(self._grace)


async def _close(*streams: ReceiveStream) -> None:
    others: list[ReceiveStream] = []
    for stream in streams:
        if isinstance(stream, trio.lowlevel.FdStream):
            stream.close()
        else:
            others.append(stream)
    if others:
        with trio.move_on_after(1, shield=True):  # noqa: ASYNC912  # there are some
            for stream in others:
                await stream.aclose()


class _PipeReader:
    """Reads one pipe, for as long as it is worth while."""

    def __init__(
        self,
        name: str,
        stream: ReceiveStream,
        decoder: LineDecoder,
        take: Callable[[Sequence[Line]], None] | None,
        room: Callable[[], Awaitable[None]] | None,
        tail: StderrTail | None = None,
    ) -> None:
        self.name = name
        self.ended = False
        self.over = trio.Event()
        self._stream = stream
        self._decoder = decoder
        self._take = take
        self._room = room
        self._tail = tail
        self._scope = trio.CancelScope()
        self._patience = math.inf
        self._budget = math.inf
        self._may_hold_more = False
        """Whether the last read has filled its buffer."""
        self._is_waiting = False
        self._waits_since = 0.0
        """When the wait for bytes began, or was cut short."""

    def begin_draining(self, grace: float) -> None:
        """The child has ended: what comes now is its last words, or another's."""
        self._patience, self._budget = grace, DRAIN_BUDGET
        if self._is_waiting:
            self._limit_wait()

    async def run(self) -> None:
        """Read to the end, or until patience or budget are used up."""
        with self._scope:
            while self._may_continue():
                await self._deliver(await self._receive())
        if self._scope.cancelled_caught:
            await self._read_buffered()
        if self._take is not None and (last := self._decoder.close()):
            self._take(last)
        self.over.set()

    def _may_continue(self) -> bool:
        return not self.ended and self._budget > 0

    async def _read_buffered(self) -> None:
        """Read what lay in the pipe all the time, should we have come to it too late."""
        while self._may_continue():
            found: list[bytes | bytearray] = []
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_cancel_if_idle, nursery.cancel_scope)
                found.append(await self._read())
                nursery.cancel_scope.cancel()
            if not found:
                break
            await self._deliver(found[0])

    async def _receive(self) -> bytes | bytearray:
        self._is_waiting = True
        if self._patience < math.inf:
            self._limit_wait()
        try:
            return await self._read()
        finally:
            self._is_waiting = False
            if self._patience < math.inf:
                self._scope.deadline = math.inf
                self._patience -= trio.current_time() - self._waits_since

    def _limit_wait(self) -> None:
        self._waits_since = trio.current_time()
        self._scope.deadline = self._waits_since + self._patience

    async def _read(self) -> bytes | bytearray:
        try:
            if isinstance(self._stream, trio.lowlevel.FdStream):
                return await self._read_descriptor(self._stream.fileno())
            return await self._stream.receive_some(READ)
        except (trio.BrokenResourceError, trio.ClosedResourceError, OSError):
            return b""

    async def _read_descriptor(self, descriptor: int) -> bytes:
        """Read as `receive_some` does, with one turn of the scheduler instead of two.

        After a read that did not fill the buffer the pipe is nearly always empty: wait first.
        """
        if self._may_hold_more:
            await trio.lowlevel.checkpoint()
        else:
            await trio.lowlevel.wait_readable(descriptor)
        data = _read_now(descriptor)
        while data is None:
            await trio.lowlevel.wait_readable(descriptor)
            data = _read_now(descriptor)
        self._may_hold_more = len(data) == READ
        return data

    async def _deliver(self, data: bytes | bytearray) -> None:
        if not data:
            self.ended = True
            return
        self._budget -= len(data)
        if self._tail is not None:
            self._tail.feed(data)
        if self._take is not None:
            self._take(self._decoder.feed(data))
        if self._room is not None:
            await self._room()


def _read_now(descriptor: int) -> bytes | None:
    try:
        return os.read(descriptor, READ)
    except BlockingIOError:
        return None


async def _cancel_if_idle(scope: trio.CancelScope) -> None:
    """Cancel a read that finds nothing; one that finds something is over by then."""
    for _ in range(TURNS):
        await trio.lowlevel.checkpoint()
    scope.cancel()
