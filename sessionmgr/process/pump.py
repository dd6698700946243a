"""Pipe pump: reads stdout and stderr and writes stdin concurrently, so full pipes cannot deadlock.

Reading waits only for `room`, between two reads: unread data stays in the pipe and slows the child
down.

The end of the child is not the end of its pipes, because a descendant may hold them open. All data
that the child itself has written is in the pipe when it ends, and a pipe holds 1 MiB at most. So
from then on each reader stops after `grace` seconds of silence or 1 MiB, and the result reports the
pipes that are still open. The grace counts only while we read: a full store must not cost the last
output. Nor must a suspended machine: when the grace is over, the pipe is read once more.
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
"""Number of scheduler turns that a read takes to find available data."""


class PumpResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a pump: how the pipes of a child ended."""

    held: tuple[str, ...]
    """Names of the pipes, stdout or stderr, that another process still held open at the end."""
    unsent: int
    """Number of bytes that the child did not read."""


class PipePump:
    """Pump of one child's pipes: `outbox` is written to stdin, `tail` keeps the end of stderr.

    `take` receives the lines of each read, in order. It may be called without lines, because a read
    is a sign of life. It must not wait. `take_error` receives the lines of stderr likewise. `room`
    is awaited between two reads of stdout, and of stderr if there is a `take_error`.
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
        """Set at the end of stdout; the child may live on, and hold stderr."""
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

        They may end before the child: it can close both and run on. `exited` waits for its end. An
        exception of a callback is raised in an exception group.
        """
        out = _PipeReader("stdout", stdout, self._decoder, self._take, self._room)
        stderr_decoder = LineDecoder(READ)  # for a tail and not a protocol: long lines may be cut
        room = None if self._take_error is None else self._room
        err = _PipeReader("stderr", stderr, stderr_decoder, self._take_error, room, self.tail)
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
    """Reader of one pipe."""

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
        """Whether the last read filled its buffer."""
        self._is_waiting = False
        self._waits_since = 0.0
        """When the wait for data began, or was interrupted."""

    def begin_draining(self, grace: float) -> None:
        """Start the grace period: the child has ended, and its last output remains to be read."""
        self._patience, self._budget = grace, DRAIN_BUDGET
        if self._is_waiting:
            self._limit_wait()

    async def run(self) -> None:
        """Read until the end of the pipe, or until the grace or the byte budget is used up."""
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
        """Read data that was in the pipe in time, in case we come to it too late."""
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
    """Cancel a read that finds no data; a read that finds some is over by then."""
    for _ in range(TURNS):
        await trio.lowlevel.checkpoint()
    scope.cancel()
