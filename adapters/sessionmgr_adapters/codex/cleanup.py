"""What a turn leaves behind: agents at work, commands in the background, threads; and its end."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.model import ToolCallFailed
from sessionmgr_adapters.codex.conversation import CodexConversation
from sessionmgr_adapters.codex.items import CommandExecution
from sessionmgr_adapters.codex.normalise import parent_of
from sessionmgr_adapters.codex.tool_items import is_call, tool_input, tool_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessionmgr.model import Event, Json
    from sessionmgr_adapters.codex.calling import Caller, Talk
    from sessionmgr_adapters.codex.state import State

CLEANING: Final = 2.0
"""Seconds for each kind of what is left to be ended."""
SETTLING: Final = 1.0
"""Seconds for an agent that was told something to begin a turn for that, if it does."""


class Leavings:
    """What is left of a run's turn; who reads says when something of it may have changed."""

    def __init__(self, conversation: Talk, caller: Caller, state: State) -> None:
        self._conversation: Final = conversation
        self._caller: Final = caller
        self._state: Final = state
        self._news = trio.Event()
        self._is_unwanted = False

    @property
    def is_there(self) -> bool:
        """Whether something of it runs still."""
        return bool(self._state.tools or self._state.agents.working)

    def note(self) -> None:
        """Note that it may have changed."""
        self._news.set()

    def give_up(self) -> None:
        """Wait for nobody's work any more."""
        self._is_unwanted = True
        self._news.set()

    async def agents_are_done(self) -> None:
        """Wait until no agent works any more, nor the run itself, or nobody wants it."""
        await trio.lowlevel.checkpoint()
        await self._until(lambda: self._is_unwanted or not self._is_work_on)
        addressed = self._state.agents.addressed
        while addressed and not self._is_unwanted:
            with trio.move_on_after(SETTLING) as patience:
                await self._until(lambda: self._is_unwanted or self._is_work_on or not addressed)
            if patience.cancelled_caught:
                break
            await self._until(lambda: self._is_unwanted or not self._is_work_on)
        addressed.clear()

    @property
    def _is_work_on(self) -> bool:
        return bool(self._state.agents.working) or self._state.is_turning

    async def end(self) -> None:
        """End what agents do, and the commands of all; and give the agents' threads back."""
        await trio.lowlevel.checkpoint()
        with trio.move_on_after(CLEANING):
            await self._stop_agents()
        with trio.move_on_after(CLEANING):
            for thread in dict.fromkeys(self._commands()):
                await self._tell("thread/backgroundTerminals/clean", thread)
            await self._until(lambda: not self._commands())

    async def clear_away(self) -> None:
        """Kill what commands have left outside of a sandbox."""
        await trio.lowlevel.checkpoint()
        if self._state.commanding and isinstance(self._conversation, CodexConversation):
            with trio.move_on_after(CLEANING):
                await self._conversation.clear_away(sorted(self._state.commanding))

    async def give_back(self) -> None:
        """Give the agents' threads back: they cost memory, and could go on."""
        await trio.lowlevel.checkpoint()
        loaded = self._state.agents.loaded
        if loaded:
            with trio.move_on_after(CLEANING):
                for thread in list(loaded):
                    await self._tell("thread/unsubscribe", thread)
                await self._until(lambda: not loaded)

    def told(self) -> list[Event]:
        """Return the ends of the calls that have not come to one."""
        return [
            ToolCallFailed(
                tool_call_id=item.id,
                tool_name=tool_name(item),
                tool_input=tool_input(item),
                parent_tool_call_id=parent_of(self._state.threads[item.id], self._state),
                synthetic=True,
            )
            for item in list(self._state.tools.values())
            if is_call(item)
        ]

    async def _stop_agents(self) -> None:
        working = self._state.agents.working
        stopped: set[str] = set()
        async with trio.open_nursery() as nursery:
            while working:  # one that is stopped may have called another just before
                for thread, turn in working.items():
                    if turn and turn not in stopped:
                        stopped.add(turn)
                        nursery.start_soon(
                            partial(self._tell, "turn/interrupt", thread, turnId=turn)
                        )
                self._news = trio.Event()
                await self._news.wait()
            nursery.cancel_scope.cancel()

    def _commands(self) -> list[str]:
        """Return the threads of the commands that run."""
        tools, threads = self._state.tools, self._state.threads
        return [threads[id_] for id_ in tools if isinstance(tools[id_], CommandExecution)]

    async def _tell(self, method: str, thread: str, **more: Json) -> None:
        await self._caller.call(method, {"threadId": thread, **more})

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self._news = trio.Event()
            await self._news.wait()
