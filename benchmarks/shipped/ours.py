"""The shipped adapters, with a child that plays the frames of their agents."""

import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import ClassVar, Final

import trio

from benchmarks.effort import Effort, Figures, Stopwatch, cpu
from benchmarks.manager.end_to_end import SUBSCRIBERS, follow_text
from benchmarks.manager.pipeline import take_all
from benchmarks.shipped import player
from benchmarks.shipped.frames import DIALECTS, BenchDialect
from benchmarks.wire.sessionmgr_pipe import EVENTS
from sessionmgr.adapter import ProviderAdapter, RunContext
from sessionmgr.manager import Manager, RunHandle, SessionHandle, open_manager
from sessionmgr.manager.inbox import EventBatch, Inbox
from sessionmgr.model import Json, MessageReceived, MessageStreamed, RunStatus
from sessionmgr_adapters.claude import ClaudeAdapter
from sessionmgr_adapters.codex import CodexAdapter

ADAPTERS: Final[tuple[type[ProviderAdapter], ...]] = (ClaudeAdapter, CodexAdapter)
MODES: Final = ("default", "plan")


def _command(agent: BenchDialect, path: str) -> list[Json]:
    assert player.__file__ is not None
    return [sys.executable, "-I", "-S", player.__file__, agent.name, path]


@asynccontextmanager
async def open_bench_manager(
    adapter: type[ProviderAdapter], *, sqlite: bool
) -> AsyncGenerator[Manager, None]:
    """Open a manager with a store in a file or in memory, and without a user's environment."""
    with tempfile.TemporaryDirectory(prefix="sessionmgr-benchmark-") as directory:
        store = Path(directory, "store.db") if sqlite else None
        async with open_manager(
            adapters={adapter.name: adapter}, store=store, environ={"HOME": directory}
        ) as manager:
            yield manager


async def play(manager: Manager, dialect: int, path: str, session: SessionHandle) -> RunHandle:
    """Run one prompt, for which the child sends a file of frames, and wait for its end."""
    run = await session.submit(path, options={"command": _command(DIALECTS[dialect], path)})
    result = await run.result()
    if result.status is not RunStatus.COMPLETED:
        raise AssertionError(f"{result.status}: {result.failure}")
    return run


class PieceCounter:
    """Counts the pieces of text taken from the inbox, starting with the second batch."""

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self.left = wanted
        self._counted = 0
        self._watch = Stopwatch(cpu)

    def take(self, count: int) -> None:
        """Count the pieces of a batch."""
        is_first = self.left == self._wanted
        self.left -= count
        if is_first:
            self._watch.start()
        else:
            self._counted += count
        if not self.left:
            self._watch.stop()

    def cost(self) -> float:
        """Return the µs per piece."""
        assert not self.left, f"{self.left} of {self._wanted} pieces did not arrive"
        return self._watch.micros / self._counted


class FrontInbox:
    """An inbox in front of the session's own, which counts the agent's events and drops them.

    Only the beginning and the end of the run reach the session's recorder, so that the recorder
    costs nothing while text streams. The run itself is unchanged: it hands over events and waits
    for room.
    """

    pieces: ClassVar[PieceCounter]

    def __init__(self, run: RunContext) -> None:
        self.inbox: Final = Inbox()
        self._session: Final = run._inbox  # pyright: ignore[reportPrivateUsage]
        run._inbox = self.inbox  # type: ignore[misc]

    def take(self, item: EventBatch) -> bool:
        """Count the pieces of a batch; forward the events that the run needs beside its text."""
        if item.is_text:
            self.pieces.take(len(item.events))
            return True
        others = [event for event in item.events if type(event) is not MessageStreamed]
        if len(others) < len(item.events):
            self.pieces.take(len(item.events) - len(others))
        if rest := tuple(event for event in others if type(event) is not MessageReceived):
            self._session.put_events(item.run, rest, blobs=item.blobs)
        return True


async def count_pieces(run: RunContext, play_run: Callable[[RunContext], Awaitable[None]]) -> None:
    """Run an adapter and count its pieces."""
    front = FrontInbox(run)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(take_all, front.inbox, front.take)
        await play_run(run)
        await front.inbox.recorded()
        nursery.cancel_scope.cancel()


class CountedClaude(ClaudeAdapter):
    """Claude's adapter with a counter of pieces."""

    async def run(self, run: RunContext) -> None:
        await count_pieces(run, super().run)


class CountedCodex(CodexAdapter):
    """Codex's adapter with a counter of pieces."""

    async def run(self, run: RunContext) -> None:
        await count_pieces(run, super().run)


COUNTED: Final[tuple[type[ProviderAdapter], ...]] = (CountedClaude, CountedCodex)


def port(effort: Effort, dialect: int) -> Figures:
    """Measure the cost of a piece from the child's pipe until it is taken from the inbox.

    Included, as in `benchmarks.manager.pipeline`: reading, splitting, decoding and normalising in
    the shipped adapter, the hand-over to an inbox with its checks and accounting, taking it out,
    and marking it as stored. A piece includes its share of the other lines of its message. Not
    included: recorder, store and subscribers.
    """

    async def main() -> Figures:
        costs: list[float] = []
        pieces = max(effort.operations(EVENTS), 2_000)
        with DIALECTS[dialect].write_lines(pieces) as path:
            async with open_bench_manager(COUNTED[dialect], sqlite=False) as manager:
                for _ in range(1 + effort.repeats(5)):
                    FrontInbox.pieces = PieceCounter(pieces)
                    session = await manager.open_session(
                        ADAPTERS[dialect].name, permission_mode=MODES[dialect]
                    )
                    await play(manager, dialect, path, session)
                    costs.append(FrontInbox.pieces.cost())
        return {"event": median(costs[1:])}

    return trio.run(main)


def whole(effort: Effort, dialect: int) -> Figures:
    """Measure the whole path: child, adapter, recorder, SQLite, two subscribers."""

    async def main() -> Figures:
        return {"event": await effort.time_part(partial(_whole, dialect), EVENTS)}

    return trio.run(main)


async def _whole(dialect: int, watch: Stopwatch, pieces: int) -> None:
    adapter = ADAPTERS[dialect]
    with DIALECTS[dialect].write_lines(pieces) as path:
        async with open_bench_manager(adapter, sqlite=True) as manager:
            with watch:
                session = await manager.open_session(adapter.name, permission_mode=MODES[dialect])
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(play, manager, dialect, path, session)
                    for _ in range(SUBSCRIBERS):
                        nursery.start_soon(follow_text, manager, session.id, pieces)
