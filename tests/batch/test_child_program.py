"""The child program tells whole lines, whatever becomes of who wanted to tell them."""

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from sessionmgr.batch import Work, child_program
from sessionmgr.batch.child_program import Outside, Service
from sessionmgr.batch.messages import (
    Active,
    Alive,
    Broken,
    Message,
    Open,
    Ready,
    Renew,
    Submit,
    from_child,
    line_of,
)
from sessionmgr.testing.scripted import Hang, Say
from sessionmgr.wire import LineDecoder
from tests.batch.hall import job

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


async def test_what_an_attempt_is_at_is_told_once_for_each_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_program, "TELL_EVERY", 0.01)
    orders, told = os.pipe()
    reports, listened = os.pipe()
    lines, heard = LineDecoder(1_000_000), list[Message]()

    async def until(is_enough: Callable[[], bool]) -> None:
        while not is_enough():
            data = await listener.receive_some()
            heard.extend(
                from_child.decode(line) for line in lines.feed(data) if type(line) is bytes
            )

    def doings() -> list[str]:
        return [each.activity.doing for each in heard if isinstance(each, Active)]

    async with (
        trio.lowlevel.FdStream(told) as teller,
        trio.lowlevel.FdStream(reports) as listener,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(Service(Outside(orders, listened)).serve)
        adapters = {"actor": "tests.batch.actors:Actor"}
        store = str(tmp_path / "runs.db")
        await teller.send_all(line_of(Open(store=store, adapters=adapters, asks=False)))
        await until(lambda: Ready() in heard)
        work = Work(
            batch="b",
            job=job("a", Say(text="x"), Hang()),
            attempt=1,
            session_id="ses_00000000000000000001",
        )
        await teller.send_all(line_of(Renew(seconds=60)))
        await teller.send_all(line_of(Submit(work=work)))
        await until(lambda: bool(doings()))
        signs = heard.count(Alive())
        await until(lambda: heard.count(Alive()) >= signs + 3)
        assert len(doings()) == len(set(doings()))
        await teller.aclose()  # no more orders
