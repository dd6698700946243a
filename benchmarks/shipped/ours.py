"""The adapters that ship, on a child that plays their agents' frames."""

import sys
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import ClassVar, Final

import trio

from benchmarks.effort import Effort, Figures, Stopwatch, cpu
from benchmarks.manager.whole import SUBSCRIBERS, follow_text
from benchmarks.shipped import player
from benchmarks.shipped.frames import DIALECTS, Dialect
from benchmarks.wire.frame import written
from benchmarks.wire.ours import EVENTS
from sessionmgr.adapter import ProviderAdapter, RunContext
from sessionmgr.manager import Manager, SessionHandle, open_manager
from sessionmgr.model import Event, Json, MessageStreamed, RunStatus
from sessionmgr_adapters.claude import ClaudeAdapter
from sessionmgr_adapters.codex import CodexAdapter

ADAPTERS: Final[tuple[type[ProviderAdapter], ...]] = (ClaudeAdapter, CodexAdapter)
MODES: Final = ("default", "plan")


def _command(agent: Dialect, path: str) -> list[Json]:
    assert player.__file__ is not None
    return [sys.executable, "-I", "-S", player.__file__, agent.name, path]


@asynccontextmanager
async def _managed(
    adapter: type[ProviderAdapter], *, sqlite: bool
) -> AsyncGenerator[Manager, None]:
    with tempfile.TemporaryDirectory(prefix="sessionmgr-benchmark-") as directory:
        store = Path(directory, "store.db") if sqlite else None
        async with open_manager(
            adapters={adapter.name: adapter}, store=store, environ={"HOME": directory}
        ) as manager:
            yield manager


async def _play(manager: Manager, dialect: int, path: str, session: SessionHandle) -> None:
    run = await session.submit(path, options={"command": _command(DIALECTS[dialect], path)})
    result = await run.result()
    if result.status is not RunStatus.COMPLETED:
        raise AssertionError(f"{result.status}: {result.failure}")


class Pieces:
    """Counts pieces as they are handed to the port, from the second read of them on."""

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._left = wanted
        self._counted = 0
        self._watch = Stopwatch(cpu)

    def take(self, count: int) -> None:
        """Take the pieces of a read."""
        is_first = self._left == self._wanted
        self._left -= count
        if is_first:
            self._watch.start()
        else:
            self._counted += count
        if not self._left:
            self._watch.stop()

    def cost(self) -> float:
        """Return the µs of each piece."""
        assert not self._left, f"{self._left} of {self._wanted} pieces did not arrive"
        return self._watch.micros / self._counted


class Port(RunContext):
    """A run whose pieces are counted where the adapter hands them over, and go no further."""

    __slots__ = ()
    pieces: ClassVar[Pieces]

    def emit_nowait(
        self,
        *events: Event,
        size: int | None = None,
        blobs: Sequence[bytes] = (),
    ) -> None:
        """Hand over what is no piece, and count the others."""
        count = sum(type(event) is MessageStreamed for event in events)
        if count:
            self.alive()
            self.pieces.take(count)
        if count < len(events):
            rest = [event for event in events if type(event) is not MessageStreamed]
            super().emit_nowait(*rest, blobs=blobs)


def _count(run: RunContext) -> RunContext:
    run.__class__ = Port
    return run


class CountedClaude(ClaudeAdapter):
    """Claude's adapter, its pieces counted."""

    async def run(self, run: RunContext) -> None:
        await super().run(_count(run))


class CountedCodex(CodexAdapter):
    """Codex's adapter, its pieces counted."""

    async def run(self, run: RunContext) -> None:
        await super().run(_count(run))


COUNTED: Final[tuple[type[ProviderAdapter], ...]] = (CountedClaude, CountedCodex)


def port(effort: Effort, dialect: int) -> Figures:
    """Take what a piece costs from the child's pipe until the adapter hands it to the port."""

    async def main() -> Figures:
        costs: list[float] = []
        lines = max(effort.operations(EVENTS), 2_000)
        with written(lines, DIALECTS[dialect].line) as path:
            async with _managed(COUNTED[dialect], sqlite=False) as manager:
                for _ in range(1 + effort.repeats(5)):
                    Port.pieces = Pieces(lines)
                    session = await manager.open_session(
                        ADAPTERS[dialect].name, permission_mode=MODES[dialect]
                    )
                    await _play(manager, dialect, path, session)
                    costs.append(Port.pieces.cost())
        return {"event": median(costs[1:])}

    return trio.run(main)


def whole(effort: Effort, dialect: int) -> Figures:
    """Take the whole way: child, adapter, recorder, SQLite, two subscribers."""

    async def main() -> Figures:
        return {"event": await effort.time_part(partial(_whole, dialect), EVENTS)}

    return trio.run(main)


async def _whole(dialect: int, watch: Stopwatch, lines: int) -> None:
    adapter = ADAPTERS[dialect]
    with written(lines, DIALECTS[dialect].line) as path:
        async with _managed(adapter, sqlite=True) as manager:
            with watch:
                session = await manager.open_session(adapter.name, permission_mode=MODES[dialect])
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_play, manager, dialect, path, session)
                    for _ in range(SUBSCRIBERS):
                        nursery.start_soon(follow_text, manager, session.id, lines)
