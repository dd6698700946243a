"""The child program tells whole lines, whatever becomes of who wanted to tell them."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import trio
from trio.testing import wait_all_tasks_blocked

from sessionmgr.batch.child_program import Outside
from sessionmgr.batch.messages import Alive, Broken, Message, Ready, from_child
from sessionmgr.wire import LineDecoder

LONG = Broken(why="x" * 4_000_000)  # it does not fit into a pipe


@dataclass
class Pipes:
    outside: Outside
    reports: trio.lowlevel.FdStream

    async def heard(self) -> list[Message]:
        """Return what is told, up to a sign of life."""
        lines, heard = LineDecoder(2 * len(LONG.why)), list[Message]()
        while Alive() not in heard:
            data = await self.reports.receive_some()
            heard += [from_child.decode(line) for line in lines.feed(data) if type(line) is bytes]
        return heard


@asynccontextmanager
async def open_pipes() -> AsyncGenerator[Pipes, None]:
    orders, nobody = os.pipe()
    reports, told = os.pipe()
    async with trio.lowlevel.FdStream(nobody), trio.lowlevel.FdStream(reports) as listener:
        yield Pipes(Outside(orders, told), listener)


async def test_a_question_that_is_given_up_halfway_does_not_spoil_the_next_line() -> None:
    async with open_pipes() as pipes, trio.open_nursery() as nursery:
        given_up_all = trio.Event()

        async def tell() -> None:
            async with pipes.outside.speaking():
                async with trio.open_nursery() as given_up:
                    given_up.start_soon(pipes.outside.tell, LONG)
                    await wait_all_tasks_blocked()
                    given_up.start_soon(pipes.outside.tell, Ready())  # it waits for its turn
                    await wait_all_tasks_blocked()
                    given_up.cancel_scope.cancel()
                given_up_all.set()
                await pipes.outside.tell(Alive())

        nursery.start_soon(tell)
        await given_up_all.wait()
        assert await pipes.heard() == [LONG, Alive()]
