"""Where an adapter is tried: a manager with a store, which is read by the laws when it is over."""

from __future__ import annotations

from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Unpack

import trio

from sessionmgr.manager import Clocks, open_manager
from sessionmgr.model import (
    AnyEvent,
    MessageReceived,
    MessageStreamed,
    PermissionMode,
    RunEnded,
    ToolCallEnded,
    ToolCallStarted,
)
from sessionmgr.store import MemoryStore
from sessionmgr.testing.invariants import broken_laws

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from sessionmgr.manager import Manager, RunArguments, RunHandle, SessionHandle
    from sessionmgr.model import RunResult
    from sessionmgr.store import Store
    from sessionmgr.testing.adapter_conformance.case import AdapterCase, Play

SLACK: Final = 20.0
"""Seconds that a busy machine may add to what has a bound."""
PATIENCE: Final = 120.0
ENDING: Final = 90.0
"""Seconds in which a run ends that is to end by itself: less than patience, so that it is said."""
_OURS: Final = {"message_sent", "session_created", "stall_suspected"}
# What may happen before a provider has said that it has begun, and may keep it from doing so.
_INCIDENTS: Final = {"error_occurred", "output_received", "process_exited", "raw_received"}


@dataclass(frozen=True, slots=True)
class RunTrace:
    """A run that is over."""

    result: RunResult
    events: list[AnyEvent]

    @property
    def types(self) -> list[str]:
        """What the adapter told, in its order."""
        return [each.type for each in self.events if each.type not in _OURS]


class ConformanceHarness:
    """One manager, with the adapter in it."""

    def __init__(self, case: AdapterCase, manager: Manager, store: Store, place: Path) -> None:
        self.case: Final = case
        self.manager: Final = manager
        self.store: Final = store
        self.place: Final = place
        self.afterwards: Final[list[Callable[[], None]]] = []
        """What is to be looked at when the manager is gone."""

    async def session(self, mode: str = "default") -> SessionHandle:
        """Open a session."""
        return await self.manager.open_session(
            self.case.adapter.name, cwd=self.place, permission_mode=PermissionMode(mode)
        )

    async def submit(
        self, play: Play, session: SessionHandle | None = None, **wishes: Unpack[RunArguments]
    ) -> RunHandle:
        """Start a run."""
        session = session or await self.session()
        wishes.setdefault("options", play.options)
        return await session.submit(play.prompt, **wishes)

    async def run_to_end(
        self, play: Play, session: SessionHandle | None = None, **wishes: Unpack[RunArguments]
    ) -> RunTrace:
        """Play a run to its end."""
        return await self.collect(await self.submit(play, session, **wishes))

    async def collect(self, run: RunHandle) -> RunTrace:
        """See a run to its end, and look at all that was told of it.

        Raises:
            AssertionError: It does not end, or what was told of it does not hold together.
        """
        events: list[AnyEvent] = []
        with trio.move_on_after(ENDING) as patience:
            async for event in run:
                events.append(event)  # noqa: PERF401  # what has come is told when it does not end
        if patience.cancelled_caught:
            told = [event.type for event in events]
            raise AssertionError(f"the run has not ended after {ENDING:.0f} s; told: {told}")
        played = RunTrace(await run.result(), events)
        _check_trace(played)
        return played

    async def wait_for_text(self, run: RunHandle, text: str | None) -> None:
        """Wait until a run has said this text, or anything at all.

        Raises:
            AssertionError: It ended before it did, or did not within patience.
        """
        if not await self.wait_for_text_or_end(run, text):
            raise AssertionError(f"it ended, and was to hang: {(await run.result())}")

    async def wait_for_text_or_end(self, run: RunHandle, text: str | None) -> bool:
        """Wait until a run has said this text, or anything at all, and return whether it has.

        Raises:
            AssertionError: It neither did nor ended within patience.
        """
        said = ""
        with trio.move_on_after(PATIENCE):
            async for event in run:
                match event:
                    case MessageStreamed(delta=delta):
                        said += delta
                    case MessageReceived(role="assistant", content=content):
                        said = content
                    case _:
                        continue
                if text is None or text in said:
                    return True
            return False
        raise AssertionError(f"it was to say {text!r} and said {said!r}")

    async def result_in_time(self, run: RunHandle) -> RunResult:
        """Wait for the result of a run that was told to end.

        Raises:
            AssertionError: It took longer than its grace.
        """
        slack = 0.5 if self.case.virtual else SLACK
        with trio.move_on_after(self.case.grace + slack):
            return await run.result()
        raise AssertionError("it did not end within its grace")


@asynccontextmanager
async def open_harness(case: AdapterCase, place: Path) -> AsyncGenerator[ConformanceHarness, None]:
    """Open a manager for a case; what it leaves in its store must be a lawful record."""
    store = MemoryStore()
    adapter = case.adapter
    clocks = Clocks(close=case.grace)
    with trio.fail_after(PATIENCE):
        async with open_manager(
            store=store, adapters={adapter.name: adapter}, clocks=clocks
        ) as manager:
            stage = ConformanceHarness(case, manager, store, place)
            yield stage
    assert await broken_laws(store) == []
    for look in stage.afterwards:
        look()


def _check_trace(played: RunTrace) -> None:
    """Look at what was told of one run: what begins ends, and what is whole is its pieces."""
    types = played.types
    assert types.count("run_started") <= 1, types
    before = types[: types.index("run_started")] if "run_started" in types else []
    assert set(before) <= _INCIDENTS, f"{before} came before the run had started"
    ends = [event for event in played.events if isinstance(event, RunEnded)]
    assert len(ends) == 1, f"it ended {len(ends)} times: {types}"
    assert f"run_{played.result.status}" == ends[0].type
    _check_tools(played)
    _check_messages(played)


def _check_tools(played: RunTrace) -> None:
    begun = Counter(
        each.tool_call_id for each in played.events if isinstance(each, ToolCallStarted)
    )
    ended = Counter(each.tool_call_id for each in played.events if isinstance(each, ToolCallEnded))
    twice = [name for name in begun | ended if max(begun[name], ended[name]) > 1]
    assert not twice, f"tool calls that began or ended twice: {twice}"
    if played.result.status == "completed":
        assert not begun - ended, f"tool calls without an end: {begun - ended}"


def _check_messages(played: RunTrace) -> None:
    streamed: dict[str | None, str] = {}
    for each in played.events:
        if isinstance(each, MessageStreamed):
            streamed[each.message_id] = streamed.get(each.message_id, "") + each.delta
        elif isinstance(each, MessageReceived) and each.message_id in streamed:
            pieces = streamed.pop(each.message_id)
            assert pieces == each.content, f"{pieces!r} was streamed, and then {each.content!r}"
