from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress

import pytest
import trio
from trio.testing import MockClock, memory_stream_one_way_pair, wait_all_tasks_blocked

from sessionmgr.process.pump import DRAIN_BUDGET, PipePump, PumpResult
from sessionmgr.process.stderr_tail import StderrTail
from sessionmgr.wire.lines import Line, LineDecoder
from sessionmgr.wire.oversized import OversizedFrame

PATIENCE = 60.0
"""Time limit in seconds of a test; each takes one or two."""
GONE = PumpResult(held=(), unsent=0)
HELD = PumpResult(held=("stdout", "stderr"), unsent=0)


class ChildOutput:
    """Output of a child, read by read."""

    def __init__(self) -> None:
        self.batches: list[Sequence[Line]] = []
        self.began = trio.Event()

    def take(self, lines: Sequence[Line]) -> None:
        self.batches.append(lines)
        self.began.set()

    @property
    def lines(self) -> list[Line]:
        return [line for batch in self.batches for line in batch]


@asynccontextmanager
async def child(script: str) -> AsyncGenerator[trio.Process]:
    """Shell with three pipes in a session of its own, all of which is killed in the end."""
    process = await trio.lowlevel.open_process(
        ["/bin/sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        with trio.fail_after(PATIENCE):  # noqa: ASYNC100  # the block has them
            yield process
    finally:
        kill_group(process)
        with trio.CancelScope(shield=True):
            await process.wait()


def kill_group(process: trio.Process) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


async def serve(pump: PipePump, process: trio.Process) -> PumpResult:
    assert process.stdout is not None
    assert process.stderr is not None
    return await pump.run(
        stdin=process.stdin, stdout=process.stdout, stderr=process.stderr, exited=process.wait
    )


async def test_a_child_writes_back_what_it_reads() -> None:
    said = ChildOutput()
    pump = PipePump(said.take)
    pump.outbox.send(b"one\ntwo\n")
    pump.outbox.close()
    async with child("cat; echo sorry >&2") as process:
        assert await serve(pump, process) == GONE
        assert await process.wait() == 0
    assert said.lines == [b"one", b"two"]
    assert pump.tail.text() == "sorry\n"
    assert pump.stdout_ended.is_set()


async def test_a_child_that_floods_stdout_before_it_reads_does_not_deadlock() -> None:
    said = ChildOutput()
    pump = PipePump(said.take)
    prompt = b"p" * 1_000_000
    pump.outbox.send(prompt)
    pump.outbox.close()
    async with child("yes flood | head -c 3000000; echo; wc -c") as process:
        assert await serve(pump, process) == GONE
    *flood, blank_count = said.lines
    assert flood == [b"flood"] * 500_000
    assert isinstance(blank_count, bytes)
    assert blank_count.strip() == b"1000000"


async def test_a_child_that_never_reads_does_not_deadlock() -> None:
    said = ChildOutput()
    pump = PipePump(said.take)
    pump.outbox.send(b"p" * 1_000_000)
    async with child("echo done") as process:
        pumped = await serve(pump, process)
    assert said.lines == [b"done"]
    assert pumped.held == ()
    # A pipe without a reader took at most what fits into it.
    assert 0 < pumped.unsent <= 1_000_000


async def test_a_child_that_closes_its_ears_is_no_error() -> None:
    said = ChildOutput()
    pump = PipePump(said.take)
    async with child("exec <&-; echo deaf; sleep 300") as process, trio.open_nursery() as nursery:
        nursery.start_soon(serve, pump, process)
        await said.began.wait()
        pump.outbox.send(b"hello\n")
        assert not await pump.outbox.flush()
        assert not pump.outbox.send(b"again\n")
        assert not pump.stdout_ended.is_set()
        process.kill()
    assert said.lines == [b"deaf"]
    assert pump.outbox.unsent == 12


async def test_a_grandchild_that_holds_the_pipes_is_not_waited_for() -> None:
    said = ChildOutput()
    pump = PipePump(said.take, grace=0.2)
    async with child("echo half; sleep 300 & printf words") as process:
        pumped = await serve(pump, process)
        assert await process.wait() == 0
    assert pumped.held == ("stdout", "stderr")
    assert said.lines == [b"half", b"words"]


async def test_a_grandchild_that_floods_on_is_cut_off() -> None:
    said = ChildOutput()
    pump = PipePump(said.take, grace=PATIENCE)
    async with child("yes flood 2>&- &") as process:
        pumped = await serve(pump, process)
    assert pumped.held == ("stdout",)
    assert len(said.lines) >= DRAIN_BUDGET // len(b"flood\n")


async def test_a_child_that_closes_stdout_and_stderr_and_lives_on_ends_the_pump() -> None:
    said = ChildOutput()
    pump = PipePump(said.take)
    async with child("echo bye; exec >&- 2>&-; sleep 300") as process:
        assert await serve(pump, process) == GONE
        assert process.returncode is None
    assert said.lines == [b"bye"]


async def test_the_end_of_stdout_is_reported_while_stderr_continues() -> None:
    said = ChildOutput()
    pump = PipePump(said.take)
    script = "echo bye; exec >&-; read line; echo $line >&2"
    async with child(script) as process, trio.open_nursery() as nursery:
        nursery.start_soon(serve, pump, process)
        await pump.stdout_ended.wait()
        assert process.returncode is None
        pump.outbox.send(b"more\n")
    assert said.lines == [b"bye"]
    assert pump.tail.text() == "more\n"


async def test_a_flood_of_complaints_keeps_its_end_and_holds_nothing_up() -> None:
    said, complaints = ChildOutput(), ChildOutput()
    pump = PipePump(said.take, take_error=complaints.take, tail=StderrTail(100))
    script = "yes 'no such thing' | head -n 300000 >&2; printf '\\033[31mlast' >&2; echo ok"
    async with child(script) as process:
        assert await serve(pump, process) == GONE
    assert said.lines == [b"ok"]
    assert pump.tail.text().endswith("no such thing\nlast")
    assert pump.tail.bytes_seen == 300_000 * 14 + 9
    assert complaints.lines == [b"no such thing"] * 300_000 + [b"\x1b[31mlast"]


async def test_a_child_that_is_killed_in_mid_line_leaves_the_half_line() -> None:
    said = ChildOutput()
    pump = PipePump(said.take)
    async with child("""printf '{"half":'; kill -9 $$""") as process:
        assert await serve(pump, process) == GONE
        assert await process.wait() == -signal.SIGKILL
    assert said.lines == [b'{"half":']


async def test_an_oversized_line_is_one_thing_and_what_follows_is_read() -> None:
    said = ChildOutput()
    pump = PipePump(said.take, decoder=LineDecoder(100_000))
    async with child("head -c 5000000 /dev/zero | tr '\\0' x; echo; echo after") as process:
        assert await serve(pump, process) == GONE
    assert said.lines == [OversizedFrame(5_000_000, b"x" * 1024), b"after"]


async def test_while_there_is_no_room_nothing_is_read_and_the_child_waits() -> None:
    said = ChildOutput()
    gate = trio.Event()
    pump = PipePump(said.take, room=gate.wait)
    script = "yes | head -c 1000000; echo end >&2"
    async with child(script) as process, trio.open_nursery() as nursery:
        nursery.start_soon(serve, pump, process)
        await said.began.wait()
        await wait_all_tasks_blocked()
        assert len(said.batches) == 1
        assert pump.tail.text() == ""
        assert process.returncode is None
        gate.set()
    assert said.lines == [b"y"] * 500_000
    assert pump.tail.text() == "end\n"


async def test_while_there_is_no_room_a_stderr_that_is_taken_waits_too() -> None:
    said, complained = ChildOutput(), ChildOutput()
    gate = trio.Event()
    pump = PipePump(said.take, take_error=complained.take, room=gate.wait)
    async with child("yes | head -c 1000000 >&2") as process, trio.open_nursery() as nursery:
        nursery.start_soon(serve, pump, process)
        await complained.began.wait()
        await wait_all_tasks_blocked()
        assert len(complained.batches) == 1
        assert process.returncode is None
        gate.set()
    assert complained.lines == [b"y"] * 500_000


# --- in virtual time, on streams in memory -------------------------------------------------------


class ScriptedChild:
    """Child that a test controls."""

    def __init__(self, pump: PipePump) -> None:
        self.pump = pump
        self.stdout, self._stdout = memory_stream_one_way_pair()
        self.stderr, self._stderr = memory_stream_one_way_pair()
        self.exited = trio.Event()
        self.pumped: list[PumpResult] = []

    async def serve(self) -> None:
        self.pumped.append(
            await self.pump.run(
                stdin=None, stdout=self._stdout, stderr=self._stderr, exited=self.exited.wait
            )
        )


async def test_the_last_words_are_not_lost_to_a_store_that_is_full(
    autojump_clock: trio.abc.Clock,
) -> None:
    said = ChildOutput()

    async def room() -> None:
        await trio.sleep(3600)

    played = ScriptedChild(PipePump(said.take, room=room, grace=2.0))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(played.serve)
        await played.stdout.send_all(b"first\n")
        await wait_all_tasks_blocked()
        played.exited.set()
        await played.stdout.send_all(b"last\n")
    assert said.lines == [b"first", b"last"]
    assert played.pumped == [HELD]
    assert trio.current_time() >= 7200


class SlowReceiveStream(trio.abc.ReceiveStream):
    """Full pipe, on a machine that is suspended before each read."""

    def __init__(self, clock: MockClock, *pieces: bytes) -> None:
        self._clock = clock
        self._pieces = list(pieces)

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        self._clock.jump(60)
        await trio.lowlevel.checkpoint()
        return self._pieces.pop(0) if self._pieces else b""

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


async def test_the_last_output_is_not_lost_on_a_suspended_machine(
    mock_clock: MockClock,
) -> None:
    said = ChildOutput()
    pump = PipePump(said.take, grace=2.0)
    pumped = await pump.run(
        stdin=None,
        stdout=SlowReceiveStream(mock_clock, b"one\n", b"two\n"),
        stderr=SlowReceiveStream(mock_clock, b"sorry"),
        exited=trio.lowlevel.checkpoint,
    )
    assert said.lines == [b"one", b"two"]
    assert pump.tail.text() == "sorry"
    assert pumped == GONE


async def test_the_grace_is_for_silence_and_not_for_life(autojump_clock: trio.abc.Clock) -> None:
    said = ChildOutput()
    played = ScriptedChild(PipePump(said.take, grace=2.0))
    begin = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(played.serve)
        await trio.sleep(1000)  # the grace does not count while the child lives
        assert played.pumped == []
        played.exited.set()
    assert played.pumped == [HELD]
    assert trio.current_time() - begin == pytest.approx(1002)


async def test_a_grandchild_that_drips_for_ever_is_bounded_by_the_grace(
    autojump_clock: trio.abc.Clock,
) -> None:
    said = ChildOutput()
    played = ScriptedChild(PipePump(said.take, grace=2.0))
    played.exited.set()
    begin = trio.current_time()

    async def drip() -> None:
        for _ in range(100):
            await played.stdout.send_all(b"drip\n")
            await trio.sleep(0.3)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(played.serve)
        with pytest.raises(trio.BrokenResourceError):
            await drip()
    assert trio.current_time() - begin < 3
    assert said.lines == [b"drip"] * 7


async def test_pipes_that_end_with_the_child_cost_no_grace(autojump_clock: trio.abc.Clock) -> None:
    played = ScriptedChild(PipePump(ChildOutput().take))
    begin = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(played.serve)
        played.exited.set()
        await played.stdout.aclose()
        await played.stderr.aclose()
    assert played.pumped == [GONE]
    assert trio.current_time() == begin


async def test_a_cancelled_pump_closes_the_pipes() -> None:
    played = ScriptedChild(PipePump(ChildOutput().take))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(played.serve)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    with pytest.raises(trio.BrokenResourceError):
        await played.stdout.send_all(b"x")
    with pytest.raises(trio.BrokenResourceError):
        await played.stderr.send_all(b"x")


async def test_what_a_callback_raises_leaves_in_one_group_and_closes_the_pipes() -> None:
    def fail(lines: Sequence[Line]) -> None:
        raise ZeroDivisionError

    played = ScriptedChild(PipePump(fail))
    await played.stdout.send_all(b"x\n")
    with pytest.raises(ExceptionGroup) as caught:
        await played.serve()
    (error,) = caught.value.exceptions
    assert isinstance(error, ZeroDivisionError)
    with pytest.raises(trio.BrokenResourceError):
        await played.stderr.send_all(b"x")


async def test_every_read_is_a_sign_of_life_even_without_a_line() -> None:
    said = ChildOutput()
    played = ScriptedChild(PipePump(said.take))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(played.serve)
        for part in (bytearray(b"a"), b"b", b"c\n"):
            await played.stdout.send_all(part)
            await wait_all_tasks_blocked()
        await played.stdout.aclose()
        await played.stderr.aclose()
    assert said.batches == [[], [], [b"abc"]]
