"""A connection to a real child that speaks in lines: the routing of frames, and the end."""

import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from sessionmgr.adapter.connections import Driver
from sessionmgr.adapter.kit.stdio_connection import (
    MAX_EARLY_BYTES,
    StdioConnection,
    StdioConversation,
    read_size,
)
from sessionmgr.process import Command, open_launcher
from sessionmgr.process.escalation import Escalation
from sessionmgr.wire import Line, OversizedFrame

ECHO = """
import sys
print("early", flush=True)
for line in sys.stdin:
    print(line.strip(), flush=True)
"""
LINE = "x" * 1023
LINES = 4 * MAX_EARLY_BYTES // 1024
HURRIED = Escalation(polite=2.0, term=1.0)


class StdioNotes:
    """Driver that records the frames pushed into it."""

    def __init__(self) -> None:
        self.frames: list[str] = []
        self.sizes: list[int] = []
        self.ends = 0
        self.room_asked = 0
        self.news = trio.Event()

    def feed(self, frames: Sequence[str], size: int) -> None:
        self.frames += frames
        self.sizes.append(size)
        self._tell()

    def crash(self, error: Exception) -> None:
        raise error

    def end(self) -> None:
        self.ends += 1
        self._tell()

    async def room(self) -> None:
        self.room_asked += 1
        await trio.lowlevel.checkpoint()

    def _tell(self) -> None:
        self.news.set()
        self.news = trio.Event()

    async def until(self, frame: str) -> None:
        while frame not in self.frames:
            await self.news.wait()


class WordConnection(StdioConnection[str, str]):
    def __init__(self) -> None:
        super().__init__(self.words, lambda word: word.encode() + b"\n", ladder=HURRIED)
        self.between: list[str] = []
        self.noticed = trio.Event()
        self.has_said = {"early": trio.Event(), LINE: trio.Event()}
        self.size = 0
        self.lives: list[bool] = []

    async def run_background(self) -> None:
        self.lives.append(not self.has_ended)
        try:
            await trio.sleep_forever()
        finally:
            self.lives.append(not self.has_ended)

    def words(self, lines: Sequence[Line]) -> list[str]:
        found = [line.decode() for line in lines if isinstance(line, bytes)]
        self.size += read_size(lines)
        for each in {"early", LINE}.intersection(found):
            if each == "early" or self.size > MAX_EARLY_BYTES:
                self.has_said[each].set()
        return found

    async def open(self, driver: Driver[str]) -> StdioConversation[str, str]:
        self.attach(driver)
        await trio.lowlevel.checkpoint()
        return StdioConversation(self, driver)

    def on_unhandled_frames(self, frames: Sequence[str]) -> None:
        self.between += frames
        self.noticed.set()


@asynccontextmanager
async def connected(script: str = ECHO) -> AsyncGenerator[WordConnection, None]:
    command = Command(argv=(sys.executable, "-I", "-c", script), cwd="/", env={})
    with trio.fail_after(30):
        async with open_launcher() as launcher:
            connection = WordConnection()
            async with connection.running(launcher, command):
                yield connection


async def test_frames_go_to_the_driver_whose_conversation_is_open() -> None:
    async with connected() as connection:
        await connection.has_said["early"].wait()
        first, second = StdioNotes(), StdioNotes()
        one = await connection.open(first)
        await one.send("a")
        await first.until("a")
        assert first.frames == ["early", "a"]
        assert sum(first.sizes) == len("earlya")
        assert first.room_asked > 0
        one.close()
        assert connection.write_message("unhandled")
        await connection.noticed.wait()
        assert connection.between == ["unhandled"]
        two = await connection.open(second)
        one.close()  # a second close of the first leaves the second open
        await two.send("b")
        await second.until("b")
        await two.discard()
    assert (first.frames, first.ends) == (["early", "a"], 0)
    assert (second.frames, second.ends) == (["b"], 1)
    assert connection.facts is not None
    assert connection.facts.exit_code == 0


async def test_a_second_conversation_beside_the_first_is_refused() -> None:
    async with connected() as connection:
        first, second = StdioNotes(), StdioNotes()
        one = await connection.open(first)
        with pytest.raises(RuntimeError, match="has a conversation already"):
            await connection.open(second)
        await one.send("a")
        await first.until("a")
    assert (second.frames, second.ends) == ([], 0)


async def test_a_driver_that_comes_when_the_child_is_gone_is_told_so_at_once() -> None:
    async with connected("print('last word')") as connection:
        await connection.wait_closed()
        await connection.aclose()  # until its process tree is empty
        late = StdioNotes()
        await connection.open(late)
        assert (late.frames, late.ends) == (["last word"], 1)


async def test_a_child_that_speaks_before_anybody_listens_is_held_up() -> None:
    flood = f"print('{LINE}\\n' * {LINES}, end='')\nprint('last')"
    async with connected(flood) as connection:
        await connection.has_said[LINE].wait()
        await trio.testing.wait_all_tasks_blocked(0.1)
        assert (
            MAX_EARLY_BYTES < connection.size <= MAX_EARLY_BYTES + 64 * 1024
        )  # one read more than there is room for
        listener = StdioNotes()
        await connection.open(listener)
        assert listener.sizes[0] == connection.size
        await listener.until("last")
        assert len(listener.frames) == LINES + 1


def test_a_line_that_was_too_long_counts_nothing() -> None:
    assert read_size([b"ab", b"c"]) == 3
    assert read_size([b"ab", OversizedFrame(10**9, b"x")]) == 2


async def test_what_goes_on_beside_the_reading_ends_after_the_child() -> None:
    async with connected() as connection:
        await connection.has_said["early"].wait()
    assert connection.lives == [True, False]
