"""Path of a piece of text: from the pipe of Claude Code to the reader of the run's events."""

from __future__ import annotations

import inspect
import sys
import threading
from collections import deque
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType, FunctionType
from typing import cast

import msgspec
import outcome
import trio
import trio.lowlevel

import sessionmgr
import sessionmgr_adapters
from sessionmgr.manager import RunHandle, open_manager
from sessionmgr.model import MessageStreamed, Run
from sessionmgr.store.sqlite.executor import DatabaseJob
from sessionmgr_adapters.claude import ClaudeAdapter
from tests.adapters.claude.dialect import CLAUDE, HELLO, IDLE, INIT, RESULT
from tests.adapters.claude.in_memory_child import InMemoryChild, InMemoryLauncher

assert sessionmgr.__file__ is not None
assert sessionmgr_adapters.__file__ is not None
HOME = f"{Path(sessionmgr.__file__).parents[1]}/"
ROOTS = tuple(
    str(Path(each).parent) for each in (sessionmgr.__file__, sessionmgr_adapters.__file__)
)
PIECE = "<a piece>"
FILES = 20
"""Maximum number of files whose functions receive one piece of text."""
HANDS = 5
"""Maximum number of tasks and threads that receive it: pipe, recorder, writer thread, recorder,
reader.
"""


class EventPath:
    """Records the files that receive the second piece, and the tasks and threads that run."""

    def __init__(self) -> None:
        self.is_open = False
        self.files: set[str] = set()
        self.hands: list[str] = []
        self._main = threading.get_ident()

    def note(self, frame: FrameType, event: str, arg: object) -> None:
        """Record a call, with its arguments and its result."""
        file, code = frame.f_code.co_filename, frame.f_code
        if not (self.is_open and event in {"call", "return"} and file.startswith(ROOTS)):
            return
        stars = bool(code.co_flags & inspect.CO_VARARGS) + bool(
            code.co_flags & inspect.CO_VARKEYWORDS
        )
        count = code.co_argcount + code.co_kwonlyargcount + stars
        given = [frame.f_locals.get(name) for name in code.co_varnames[:count]]
        # A task that resumes after a wait only passes the scheduler.
        is_entered = event == "call" and frame.f_lasti <= 0
        if holds_it(given if is_entered else arg):
            self.files.add(file.removeprefix(HOME))
            self._note_hand()

    def _note_hand(self) -> None:
        hand = threading.current_thread().name
        if threading.get_ident() == self._main:
            hand = trio.lowlevel.current_task().name
            if "run_sync_soon" in hand:
                return  # this is how a thread wakes a task
        if self.hands[-1:] != [hand]:
            self.hands.append(hand)

    @contextmanager
    def watched(self) -> Generator[None]:
        """Trace all calls, also in threads that start within the block."""
        before = sys.getprofile()
        threading.setprofile(self.note)
        sys.setprofile(self.note)
        try:
            yield
        finally:
            sys.setprofile(before)
            threading.setprofile(None)


def holds_it(value: object, depth: int = 8) -> bool:
    """Whether a value contains the piece: in its bytes, its parts, or a function's closure."""
    if isinstance(value, str):
        return PIECE in value
    if isinstance(value, bytes | bytearray):
        return PIECE.encode() in value
    return depth > 0 and any(holds_it(part, depth - 1) for part in parts(value))


def parts(value: object) -> list[object]:
    match value:
        case dict():
            return list(cast("dict[object, object]", value).values())
        case list() | tuple() | set() | frozenset() | deque():
            return list(cast("Iterable[object]", value))
        case partial():
            return [cast("object", value.func), *value.args, *value.keywords.values()]
        case FunctionType():
            return [cell.cell_contents for cell in value.__closure__ or ()]
        case outcome.Value():
            return [cast("outcome.Value[object]", value).value]
        case Run():
            return []  # the observer of a run holds all results
        case msgspec.Struct():
            return [getattr(value, name) for name in value.__struct_fields__]
        case DatabaseJob():
            return [getattr(value, "work", None)]  # it may be partly initialized
        case _:
            return []


async def way_of_a_piece(tmp_path: Path) -> EventPath:
    """Stream three pieces of text in a run, and trace the path of the second."""
    way = EventPath()
    read = trio.Event(), trio.Event(), trio.Event()

    async def play(child: InMemoryChild) -> None:
        assert await child.hears()
        await child.says(HELLO)
        assert await child.hears()
        await child.says(INIT)
        await child.says(CLAUDE.word("one "))
        await read[0].wait()
        await trio.testing.wait_all_tasks_blocked(0.05)
        way.is_open = True
        await child.says(CLAUDE.word(PIECE))
        await read[1].wait()
        await child.says(CLAUDE.word("three"))
        await read[2].wait()
        await child.says(RESULT + IDLE)
        while await child.hears() is not None:
            pass
        await child.goes()

    async def follow(run: RunHandle) -> None:
        texts: list[str] = []
        async for event in run:
            if isinstance(event, MessageStreamed):
                way.is_open = False
                texts.append(event.delta)
                read[len(texts) - 1].set()
        assert texts == ["one ", PIECE, "three"]

    async with trio.open_nursery() as nursery:
        launcher = InMemoryLauncher(play, nursery)
        adapters = {"claude": ClaudeAdapter}
        with way.watched():
            async with open_manager(
                store=tmp_path / "store.db", adapters=adapters, launcher=launcher
            ) as manager:
                session = await manager.open_session("claude", cwd=tmp_path)
                await follow(await session.submit("hi"))
    return way


async def test_a_piece_of_text_crosses_few_files(tmp_path: Path) -> None:
    way = await way_of_a_piece(tmp_path)
    assert len(way.files) <= FILES, sorted(way.files)


async def test_a_piece_of_text_is_handed_on_five_times_at_most(tmp_path: Path) -> None:
    way = await way_of_a_piece(tmp_path)
    assert len(way.hands) <= HANDS, way.hands
