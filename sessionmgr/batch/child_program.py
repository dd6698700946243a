"""The program that hosts jobs in a process of its own: `python -m sessionmgr.batch.child_program`.

It holds a manager and an `InProcessHost`, takes orders on stdin and reports on stdout. When stdin
ends, whoever gave the orders is done, or no more: what runs is cancelled, and it leaves.
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
from sessionmgr.batch.in_process import InProcessHost
from sessionmgr.batch.messages import (
    Active,
    Alive,
    Answer,
    Ask,
    Broken,
    Cancel,
    Open,
    Ready,
    Renew,
    Reported,
    Submit,
    line_of,
    to_child,
)
from sessionmgr.errors import SessionmgrError
from sessionmgr.manager import open_manager
from sessionmgr.wire import LineDecoder

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from sessionmgr.adapter import ApprovalRequest, Decision
    from sessionmgr.batch.host import Activity
    from sessionmgr.batch.messages import Message, ToChild

LONGEST: Final = 256 * 1024 * 1024
TELL_EVERY: Final = 0.5
ALIVE_EVERY: Final = 10


class Outside:
    """The two pipes to whoever gives the orders."""

    def __init__(self, orders: int, reports: int) -> None:
        self._orders: Final = trio.lowlevel.FdStream(orders)
        self._reports: Final = trio.lowlevel.FdStream(reports)
        self._to_write, self._told = trio.open_memory_channel[bytes](0)
        self._lines: Final = LineDecoder(LONGEST)
        self._pending: list[ToChild] = []

    @asynccontextmanager
    async def speaking(self) -> AsyncGenerator[None]:
        """Write what is told in this block, to its last line."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write)
            async with self._to_write:
                yield

    async def _write(self) -> None:
        """Write whole lines: half a line would spoil the next one."""
        async with self._told:
            async for line in self._told:
                await self._reports.send_all(line)

    async def tell(self, message: Message) -> None:
        """Say something, wholly or, if this is cancelled before its turn, not at all."""
        await self._to_write.send(line_of(message))

    async def order(self) -> ToChild | None:
        """Wait for the next order; None: there will be no more."""
        while not self._pending:
            data = await self._orders.receive_some()
            if not data:
                return None
            lines = self._lines.feed(data)
            self._pending += [to_child.decode(line) for line in lines if isinstance(line, bytes)]
        return self._pending.pop(0)


class Service:
    """One manager at the service of a batch elsewhere."""

    def __init__(self, outside: Outside) -> None:
        self._outside: Final = outside
        self._questions: Final[dict[int, tuple[trio.Event, list[Decision]]]] = {}
        self._numbers: Final = count(1)

    async def serve(self) -> None:
        """Do as ordered, until there are no more orders."""
        async with self._outside.speaking():
            await self._serve()

    async def _serve(self) -> None:
        begin = await self._outside.order()
        if not isinstance(begin, Open):
            return
        try:
            adapters = {name: _loaded(where) for name, where in begin.adapters.items()}
            async with open_manager(store=begin.store, adapters=adapters) as manager:
                host = InProcessHost(manager, approve=self._ask if begin.asks else None)
                async with trio.open_nursery() as nursery:
                    await nursery.start(host.serve)
                    await self._outside.tell(Ready())
                    nursery.start_soon(self._tell_ends, host)
                    nursery.start_soon(self._tell_activities, host)
                    await self._obey(host)
                    nursery.cancel_scope.cancel()
        except (SessionmgrError, ImportError, AttributeError) as error:
            await self._outside.tell(Broken(why=str(error)))

    async def _obey(self, host: InProcessHost) -> None:
        while (order := await self._outside.order()) is not None:
            match order:
                case Submit(work=work):
                    await host.submit(work)
                case Cancel():
                    await host.cancel(order.job, order.attempt, order.detail)
                case Renew(seconds=seconds):
                    await host.renew(seconds)
                case Answer():
                    self._hear(order)
                case Open():
                    pass  # it is open

    async def _tell_ends(self, host: InProcessHost) -> None:
        told = 0
        while True:
            for number, ended in await host.follow(told):
                await self._outside.tell(Reported(ended=ended))
                told = number

    async def _tell_activities(self, host: InProcessHost) -> None:
        told: dict[tuple[str, int], Activity] = {}
        for turn in count():
            await trio.sleep(TELL_EVERY)
            if turn % ALIVE_EVERY == 0:
                await self._outside.tell(Alive())
            before, told = told, {}
            for (job, attempt), activity in host.activities().items():
                told[job, attempt] = activity
                old = before.get((job, attempt))
                if old is None or old.doing != activity.doing or old.tokens != activity.tokens:
                    await self._outside.tell(Active(job=job, attempt=attempt, activity=activity))

    async def _ask(self, request: ApprovalRequest) -> Decision:
        number, answered, answer = next(self._numbers), trio.Event(), list["Decision"]()
        self._questions[number] = answered, answer
        try:
            await self._outside.tell(Ask(question=number, request=request))
            await answered.wait()
        finally:
            del self._questions[number]
        return answer[0]

    def _hear(self, answer: Answer) -> None:
        if answer.question in self._questions:
            answered, decision = self._questions[answer.question]
            decision.append(answer.allow or answer.deny or Deny(reason="no answer"))
            answered.set()


def _loaded(where: str) -> type[ProviderAdapter]:
    module, _, name = where.partition(":")
    return cast("type[ProviderAdapter]", getattr(importlib.import_module(module), name))


async def main(orders: int, reports: int) -> None:
    """Serve on these two file descriptors."""
    try:
        await Service(Outside(orders, reports)).serve()
    except* (trio.BrokenResourceError, trio.ClosedResourceError):
        pass  # nobody listens any more: what ran has been cancelled


if __name__ == "__main__":
    # Ctrl-C at a terminal is for who gives the orders; what is printed by accident is no report.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    told = os.dup(1)
    os.dup2(2, 1)
    trio.run(main, 0, told)
