"""Program of a host in a child process: `python -m sessionmgr.batch.child_program`.

It opens a manager and an `InProcessHost`, reads orders from stdin and writes reports to stdout.
At the end of stdin, the parent has ended or died: the program cancels all attempts and ends.
"""

from __future__ import annotations

import importlib
import os
import signal
from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING, Final, cast

import trio

from sessionmgr.adapter import Deny, ProviderAdapter
from sessionmgr.batch.host_messages import (
    ActiveMessage,
    AliveMessage,
    AnswerMessage,
    AskMessage,
    BrokenMessage,
    CancelMessage,
    OpenMessage,
    ReadyMessage,
    RenewMessage,
    ReportedMessage,
    SubmitMessage,
    encode_message,
    to_child,
)
from sessionmgr.batch.in_process_host import InProcessHost
from sessionmgr.errors import SessionmgrError
from sessionmgr.manager import open_manager
from sessionmgr.wire import LineDecoder

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from sessionmgr.adapter import ApprovalRequest, Decision
    from sessionmgr.batch.host import AttemptActivity
    from sessionmgr.batch.host_messages import HostMessage, ToChild

LONGEST: Final = 256 * 1024 * 1024
REPORT_EVERY: Final = 0.5
ALIVE_EVERY: Final = 10


class ParentPipes:
    """The two pipes to the parent."""

    def __init__(self, orders: int, reports: int) -> None:
        self._orders: Final = trio.lowlevel.FdStream(orders)
        self._reports: Final = trio.lowlevel.FdStream(reports)
        self._to_write, self._output = trio.open_memory_channel[bytes](0)
        self._lines: Final = LineDecoder(LONGEST)
        self._pending: list[ToChild] = []

    @asynccontextmanager
    async def running_writer(self) -> AsyncGenerator[None]:
        """Write queued messages during this block, and all of them before it ends."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write)
            async with self._to_write:
                yield

    async def _write(self) -> None:
        """Write whole lines: part of a line would corrupt the next one."""
        async with self._output:
            async for line in self._output:
                await self._reports.send_all(line)

    async def send(self, message: HostMessage) -> None:
        """Send a whole message, or nothing if cancelled before its turn."""
        await self._to_write.send(encode_message(message))

    async def receive(self) -> ToChild | None:
        """Wait for the next order; None at the end of stdin."""
        while not self._pending:
            data = await self._orders.receive_some()
            if not data:
                return None
            lines = self._lines.feed(data)
            self._pending += [to_child.decode(line) for line in lines if isinstance(line, bytes)]
        return self._pending.pop(0)


class HostServer:
    """Serves one manager to a batch in another process."""

    def __init__(self, outside: ParentPipes) -> None:
        self._pipes: Final = outside
        self._questions: Final[dict[int, tuple[trio.Event, list[Decision]]]] = {}
        self._numbers: Final = count(1)

    async def serve(self) -> None:
        """Execute orders until stdin ends."""
        async with self._pipes.running_writer():
            await self._serve()

    async def _serve(self) -> None:
        begin = await self._pipes.receive()
        if not isinstance(begin, OpenMessage):
            return
        try:
            adapters = {name: _load_adapter(where) for name, where in begin.adapters.items()}
            async with open_manager(
                store=begin.store, adapters=adapters, agents=begin.agents
            ) as manager:
                host = InProcessHost(
                    manager, approve=self._request_approval if begin.asks else None
                )
                async with trio.open_nursery() as nursery:
                    await nursery.start(host.serve)
                    await self._pipes.send(ReadyMessage())
                    nursery.start_soon(self._send_ends, host)
                    nursery.start_soon(self._send_activities, host)
                    await self._handle_messages(host)
                    nursery.cancel_scope.cancel()
        except (SessionmgrError, ImportError, AttributeError) as error:
            await self._pipes.send(BrokenMessage(why=str(error)))

    async def _handle_messages(self, host: InProcessHost) -> None:
        while (order := await self._pipes.receive()) is not None:
            match order:
                case SubmitMessage(work=work):
                    await host.submit(work)
                case CancelMessage():
                    await host.cancel(order.job, order.attempt, order.detail)
                case RenewMessage(seconds=seconds):
                    await host.renew(seconds)
                case AnswerMessage():
                    self._receive_answer(order)
                case OpenMessage():
                    pass  # the manager is open

    async def _send_ends(self, host: InProcessHost) -> None:
        last = 0
        while True:
            for number, ended in await host.follow(last):
                await self._pipes.send(ReportedMessage(ended=ended))
                last = number

    async def _send_activities(self, host: InProcessHost) -> None:
        sent: dict[tuple[str, int], AttemptActivity] = {}
        for turn in count():
            await trio.sleep(REPORT_EVERY)
            if turn % ALIVE_EVERY == 0:
                await self._pipes.send(AliveMessage())
            before, sent = sent, {}
            for (job, attempt), activity in host.activities().items():
                sent[job, attempt] = activity
                old = before.get((job, attempt))
                if old is None or old.doing != activity.doing or old.tokens != activity.tokens:
                    await self._pipes.send(
                        ActiveMessage(job=job, attempt=attempt, activity=activity)
                    )

    async def _request_approval(self, request: ApprovalRequest) -> Decision:
        number, answered, answer = next(self._numbers), trio.Event(), list["Decision"]()
        self._questions[number] = answered, answer
        try:
            await self._pipes.send(AskMessage(question=number, request=request))
            await answered.wait()
        finally:
            del self._questions[number]
        return answer[0]

    def _receive_answer(self, answer: AnswerMessage) -> None:
        if answer.question in self._questions:
            answered, decision = self._questions[answer.question]
            decision.append(answer.allow or answer.deny or Deny(reason="no answer"))
            answered.set()


def _load_adapter(where: str) -> type[ProviderAdapter]:
    module, _, name = where.partition(":")
    return cast("type[ProviderAdapter]", getattr(importlib.import_module(module), name))


async def main(orders: int, reports: int) -> None:
    """Serve on these two file descriptors."""
    try:
        await HostServer(ParentPipes(orders, reports)).serve()
    except* (trio.BrokenResourceError, trio.ClosedResourceError):
        pass  # the parent has ended, and all attempts have been cancelled


if __name__ == "__main__":
    # Ctrl-C at a terminal is for the parent. Stray output must not mix with the reports.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    reports_fd = os.dup(1)
    os.dup2(2, 1)
    trio.run(main, 0, reports_fd)
