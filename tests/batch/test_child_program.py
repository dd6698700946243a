"""The child program writes whole lines, even if the writing task is cancelled."""

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from sessionmgr.batch import AttemptSpec, child_program
from sessionmgr.batch.child_program import HostServer, ParentPipes
from sessionmgr.batch.host_messages import (
    ActiveMessage,
    AliveMessage,
    BrokenMessage,
    HostMessage,
    OpenMessage,
    ReadyMessage,
    RenewMessage,
    SubmitMessage,
    encode_message,
    from_child,
)
from sessionmgr.testing.scripted_provider import Hang, Say
from sessionmgr.wire import LineDecoder
from tests.batch.open_batch import job

LONG = BrokenMessage(why="x" * 4_000_000)  # larger than a pipe's buffer


@dataclass
class ChildPipes:
    outside: ParentPipes
    reports: trio.lowlevel.FdStream

    async def heard(self) -> list[HostMessage]:
        """Return the messages up to a sign of life."""
        lines, heard = LineDecoder(2 * len(LONG.why)), list[HostMessage]()
        while AliveMessage() not in heard:
            data = await self.reports.receive_some()
            heard += [from_child.decode(line) for line in lines.feed(data) if type(line) is bytes]
        return heard


@asynccontextmanager
async def open_pipes() -> AsyncGenerator[ChildPipes, None]:
    orders, unused = os.pipe()
    reports, reports_fd = os.pipe()
    async with trio.lowlevel.FdStream(unused), trio.lowlevel.FdStream(reports) as listener:
        yield ChildPipes(ParentPipes(orders, reports_fd), listener)


async def test_a_question_cancelled_halfway_does_not_corrupt_the_next_line() -> None:
    async with open_pipes() as pipes, trio.open_nursery() as nursery:
        given_up_all = trio.Event()

        async def tell() -> None:
            async with pipes.outside.running_writer():
                async with trio.open_nursery() as given_up:
                    given_up.start_soon(pipes.outside.send, LONG)
                    await wait_all_tasks_blocked()
                    given_up.start_soon(pipes.outside.send, ReadyMessage())  # it waits for its turn
                    await wait_all_tasks_blocked()
                    given_up.cancel_scope.cancel()
                given_up_all.set()
                await pipes.outside.send(AliveMessage())

        nursery.start_soon(tell)
        await given_up_all.wait()
        assert await pipes.heard() == [LONG, AliveMessage()]


async def test_the_activity_of_an_attempt_is_sent_once_for_each_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_program, "REPORT_EVERY", 0.01)
    orders, reports_fd = os.pipe()
    reports, listened = os.pipe()
    lines, heard = LineDecoder(1_000_000), list[HostMessage]()

    async def until(is_enough: Callable[[], bool]) -> None:
        while not is_enough():
            data = await listener.receive_some()
            heard.extend(
                from_child.decode(line) for line in lines.feed(data) if type(line) is bytes
            )

    def doings() -> list[str]:
        return [each.activity.doing for each in heard if isinstance(each, ActiveMessage)]

    async with (
        trio.lowlevel.FdStream(reports_fd) as teller,
        trio.lowlevel.FdStream(reports) as listener,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(HostServer(ParentPipes(orders, listened)).serve)
        adapters = {"actor": "tests.batch.child_adapters:Actor"}
        store = str(tmp_path / "runs.db")
        await teller.send_all(
            encode_message(OpenMessage(store=store, adapters=adapters, asks=False))
        )
        await until(lambda: ReadyMessage() in heard)
        work = AttemptSpec(
            batch="b",
            job=job("a", Say(text="x"), Hang()),
            attempt=1,
            session_id="ses_00000000000000000001",
        )
        await teller.send_all(encode_message(RenewMessage(seconds=60)))
        await teller.send_all(encode_message(SubmitMessage(work=work)))
        await until(lambda: bool(doings()))
        signs = heard.count(AliveMessage())
        await until(lambda: heard.count(AliveMessage()) >= signs + 3)
        assert len(doings()) == len(set(doings()))
        await teller.aclose()  # no more orders
