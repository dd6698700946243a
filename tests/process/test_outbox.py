from __future__ import annotations

import pytest
import trio
from trio.testing import memory_stream_one_way_pair, wait_all_tasks_blocked

from sessionmgr.process import InputFull, ProcessError
from sessionmgr.process.outbox import Outbox


async def all_of(stream: trio.abc.ReceiveStream) -> bytes:
    return b"".join([bytes(part) async for part in stream])


async def test_messages_are_written_in_their_order_and_stdin_is_closed_behind_them() -> None:
    box = Outbox()
    ours, theirs = memory_stream_one_way_pair()
    assert box.send(b"one\n")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(box.run, ours)
        await wait_all_tasks_blocked()
        mutable = bytearray(b"two\n")
        assert box.send(mutable)
        mutable[:] = b"xxxx"
        assert box.send(b"three\n")
        box.close()
        assert await all_of(theirs) == b"one\ntwo\nthree\n"
    assert (box.waiting, box.unsent) == (0, 0)


async def test_what_is_sent_after_the_end_is_refused_and_counted() -> None:
    box = Outbox()
    box.close()
    assert not box.send(b"late")
    assert box.unsent == 4
    ours, _theirs = memory_stream_one_way_pair()
    await box.run(ours)
    assert not box.send(b"later")
    assert box.unsent == 9


class BlockedSendStream(trio.abc.SendStream):
    """Pipe that is full, and later broken."""

    def __init__(self) -> None:
        self.broken = trio.Event()

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self.broken.wait()
        raise trio.BrokenResourceError

    async def wait_send_all_might_not_block(self) -> None:
        await self.broken.wait()

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


async def test_a_child_that_does_not_read_fills_the_outbox_which_refuses_more() -> None:
    box = Outbox(limit=10)
    deaf = BlockedSendStream()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(box.run, deaf)
        assert box.send(b"123456")
        await wait_all_tasks_blocked()
        assert box.send(b"7890")  # bytes that are being written count
        with pytest.raises(InputFull, match="10 of at most 10 bytes are waiting") as caught:
            box.send(b"x")
        assert (caught.value.waiting, caught.value.limit) == (10, 10)
        assert isinstance(caught.value, ProcessError)
        assert box.waiting == 10
        deaf.broken.set()
    assert box.unsent == 10


async def test_one_message_may_be_of_any_size() -> None:
    box = Outbox(limit=10)
    assert box.send(b"x" * 1000)
    with pytest.raises(InputFull):
        box.send(b"x")


async def test_a_flush_ends_when_all_is_written_that_was_sent_before() -> None:
    box = Outbox()
    ours, theirs = memory_stream_one_way_pair()
    assert await box.flush()  # nothing to wait for
    async with trio.open_nursery() as nursery:
        box.send(b"a")
        nursery.start_soon(box.run, ours)
        assert await box.flush()
        assert box.waiting == 0
        assert await theirs.receive_some() == b"a"
        box.close()


async def test_a_flush_says_when_it_will_never_be_written() -> None:
    box = Outbox()
    deaf = BlockedSendStream()
    box.send(b"a")
    flushed: list[bool] = []

    async def flush() -> None:
        flushed.append(await box.flush())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(box.run, deaf)
        nursery.start_soon(flush)
        await wait_all_tasks_blocked()
        assert flushed == []
        deaf.broken.set()
    assert flushed == [False]
    assert not await box.flush()


async def test_a_cancelled_writer_leaves_no_task_waiting() -> None:
    box = Outbox()
    deaf = BlockedSendStream()
    box.send(b"a")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(box.run, deaf)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert not await box.flush()
    assert not box.send(b"b")
    assert box.unsent == 2
