"""The harness of conformance tests: a manager, and a store whose invariants are checked."""

from __future__ import annotations

from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Unpack

import trio

from sessionmgr.adapter import resolve_options
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
    from collections.abc import AsyncGenerator, Callable, Mapping
    from pathlib import Path

    from sessionmgr.adapter import MappedMode
    from sessionmgr.manager import Manager, RunArguments, RunHandle, SessionHandle
    from sessionmgr.model import RunResult
    from sessionmgr.store import Store
    from sessionmgr.testing.adapter_conformance.case import AdapterCase, Play

SLACK: Final = 20.0
"""Seconds that a busy machine may add to a time limit."""
PATIENCE: Final = 120.0
ENDING: Final = 90.0
"""Seconds for a run to send its text or to end by itself; less than the manager's own limits, so
that the test reports the delay itself.
"""
_OURS: Final = {"message_sent", "session_created", "stall_suspected"}
# Events that may come before the provider has reported its start, and may prevent that.
_INCIDENTS: Final = {"error_occurred", "output_received", "process_exited", "raw_received"}


@dataclass(frozen=True, slots=True)
class RunTrace:
    """A run that has ended, with its events."""

    result: RunResult
    events: list[AnyEvent]

    @property
    def types(self) -> list[str]:
        """The types of the adapter's events, in order."""
        return [each.type for each in self.events if each.type not in _OURS]


class ConformanceHarness:
    """A manager with the adapter under test."""

    def __init__(self, case: AdapterCase, manager: Manager, store: Store, place: Path) -> None:
        self.case: Final = case
        self.manager: Final = manager
        self.store: Final = store
        self.place: Final = place
        self.afterwards: Final[list[Callable[[], None]]] = []
        """Checks to run after the manager has closed."""

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
        """Run a prompt to its end."""
        return await self.collect(await self.submit(play, session, **wishes))

    async def collect(self, run: RunHandle) -> RunTrace:
        """Wait for the end of a run, and check its events.

        Raises:
            AssertionError: The run does not end, or its events are inconsistent.
        """
        events: list[AnyEvent] = []
        with trio.move_on_after(ENDING) as patience:
            async for event in run:
                events.append(event)  # noqa: PERF401  # partial on a timeout
        if patience.cancelled_caught:
            types = [event.type for event in events]
            raise AssertionError(f"the run has not ended after {ENDING:.0f} s; events: {types}")
        played = RunTrace(await run.result(), events)
        _check_trace(played)
        return played

    def supported_modes(self, play: Play) -> Mapping[PermissionMode, MappedMode]:
        """Return the permission modes that the adapter supports with the options of a prompt.

        Args:
            play: The prompt.
        """
        adapter = self.case.adapter
        options = resolve_options(adapter.name, adapter.options, play.options, {})
        return adapter.permission_map(options).modes

    async def wait_for_text(self, run: RunHandle, text: str | None) -> None:
        """Wait until a run has sent this text, or any text.

        Raises:
            AssertionError: The run ended first, or the time limit passed.
        """
        if not await self.wait_for_text_or_end(run, text):
            raise AssertionError(f"the run ended, but must hang: {(await run.result())}")

    async def wait_for_text_or_end(self, run: RunHandle, text: str | None) -> bool:
        """Wait until a run has sent this text, or any text; return False if it ended first.

        Raises:
            AssertionError: The time limit passed.
        """
        said = ""
        with trio.move_on_after(ENDING):
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
        expected = "any text" if text is None else f"the text {text!r}"
        raise AssertionError(f"expected {expected}, got {said!r} in {ENDING:.0f} s")

    async def result_in_time(self, run: RunHandle) -> RunResult:
        """Wait for the result of a run that was interrupted or cancelled.

        Raises:
            AssertionError: It took longer than its grace.
        """
        slack = 0.5 if self.case.virtual else SLACK
        with trio.move_on_after(self.case.grace + slack):
            return await run.result()
        raise AssertionError("the run did not end within its grace")


@asynccontextmanager
async def open_harness(case: AdapterCase, place: Path) -> AsyncGenerator[ConformanceHarness, None]:
    """Open a manager for a case; check the invariants of its store at the end."""
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
    """Check the events of one run: starts have ends, and whole messages equal their pieces."""
    types = played.types
    assert types.count("run_started") <= 1, types
    before = types[: types.index("run_started")] if "run_started" in types else []
    assert set(before) <= _INCIDENTS, f"{before} came before the run had started"
    ends = [event for event in played.events if isinstance(event, RunEnded)]
    assert len(ends) == 1, f"the run ended {len(ends)} times: {types}"
    assert f"run_{played.result.status}" == ends[0].type
    _check_tools(played)
    _check_messages(played)


def _check_tools(played: RunTrace) -> None:
    begun = Counter(
        each.tool_call_id for each in played.events if isinstance(each, ToolCallStarted)
    )
    ended = Counter(each.tool_call_id for each in played.events if isinstance(each, ToolCallEnded))
    twice = [name for name in begun | ended if max(begun[name], ended[name]) > 1]
    assert not twice, f"tool calls that started or ended twice: {twice}"
    if played.result.status == "completed":
        assert not begun - ended, f"tool calls without an end: {begun - ended}"


def _check_messages(played: RunTrace) -> None:
    streamed: dict[str | None, str] = {}
    for each in played.events:
        if isinstance(each, MessageStreamed):
            streamed[each.message_id] = streamed.get(each.message_id, "") + each.delta
        elif isinstance(each, MessageReceived) and each.message_id in streamed:
            pieces = streamed.pop(each.message_id)
            assert pieces == each.content, f"{pieces!r} was streamed for {each.content!r}"
