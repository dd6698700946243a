"""The clean-up after a turn: agents that still work, background commands, and agents' threads.

Each step is bounded by `CLEANUP_TIMEOUT`, because the app-server may not answer. The order counts:
agents are stopped before commands are ended, since a working agent can start another command.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.model import ToolCallFailed
from sessionmgr_adapters.codex.items import CommandItem, describe_tool_call, is_call
from sessionmgr_adapters.codex.normalise import parent_tool_call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sessionmgr.adapter.kit import ChangeSignal, JsonRpcCaller
    from sessionmgr.model import Event, Json
    from sessionmgr_adapters.codex.state import CodexState

CLEANUP_TIMEOUT: Final = 2.0
"""Time limit in seconds for each kind of clean-up."""
AGENT_START_WAIT: Final = 1.0
"""Seconds to wait for an agent that received a message to start a turn; it need not start one."""


class TurnCleanup:
    """Waits for the work that a run's turn left behind, and ends it."""

    def __init__(
        self,
        state: CodexState,
        changes: ChangeSignal,
        caller: JsonRpcCaller,
        is_wanted: Callable[[], bool],
    ) -> None:
        self._state: Final = state
        self._until: Final = changes.wait_until
        self._caller: Final = caller
        self._is_wanted: Final = is_wanted
        """Whether the run still waits for the work of its agents."""

    @property
    def has_running_work(self) -> bool:
        """Whether agents or tool calls of the run are still working."""
        return bool(self._state.tools or self._state.agents.working)

    @property
    def is_needed(self) -> bool:
        """Whether there is work to wait for or to end, or threads to unload."""
        agents = self._state.agents
        return self.has_running_work or bool(agents.loaded or agents.addressed)

    async def wait_for_agents(self) -> None:
        """Wait until neither the agents nor the run itself works, or the run stops waiting."""
        await self._until(lambda: not (self._is_wanted() and self._is_working))
        addressed = self._state.agents.addressed
        while addressed and self._is_wanted():
            with trio.move_on_after(AGENT_START_WAIT) as patience:
                await self._until(
                    lambda: not self._is_wanted() or self._is_working or not addressed
                )
            if patience.cancelled_caught:
                break
            await self._until(lambda: not (self._is_wanted() and self._is_working))
        addressed.clear()

    @property
    def _is_working(self) -> bool:
        return bool(self._state.agents.working) or self._state.is_turning

    async def end_work(self) -> None:
        """Stop the turns of all agents, and end the commands of all threads."""
        await trio.lowlevel.checkpoint()
        with trio.move_on_after(CLEANUP_TIMEOUT):
            await self._stop_agents()
        with trio.move_on_after(CLEANUP_TIMEOUT):
            for thread in dict.fromkeys(self._commands()):
                await self._call_for_thread("thread/backgroundTerminals/clean", thread)
            await self._until(lambda: not self._commands())

    async def release_agent_threads(self) -> None:
        """Unload the agents' threads: they cost memory, and could start new work."""
        await trio.lowlevel.checkpoint()
        loaded = self._state.agents.loaded
        if loaded:
            with trio.move_on_after(CLEANUP_TIMEOUT):
                for thread in list(loaded):
                    await self._call_for_thread("thread/unsubscribe", thread)
                await self._until(lambda: not loaded)

    def unfinished_call_events(self) -> list[Event]:
        """Return the synthetic ends of the tool calls that did not end."""
        return [
            ToolCallFailed(
                tool_call_id=item.id,
                tool_name=describe_tool_call(item)[0],
                tool_input=describe_tool_call(item)[1],
                parent_tool_call_id=parent_tool_call(self._state.threads[item.id], self._state),
                synthetic=True,
            )
            for item in list(self._state.tools.values())
            if is_call(item)
        ]

    async def _stop_agents(self) -> None:
        working = self._state.agents.working
        stopped: set[str] = set()
        async with trio.open_nursery() as nursery:
            while working:  # an agent may have called another just before it was stopped
                for thread, turn in working.items():
                    if turn and turn not in stopped:
                        stopped.add(turn)
                        nursery.start_soon(
                            partial(self._call_for_thread, "turn/interrupt", thread, turnId=turn)
                        )
                await self._until(
                    lambda: not working or not stopped.issuperset(_agent_turns(working))
                )
            nursery.cancel_scope.cancel()

    def _commands(self) -> list[str]:
        """Return the threads of the running commands."""
        tools, threads = self._state.tools, self._state.threads
        return [threads[id_] for id_ in tools if isinstance(tools[id_], CommandItem)]

    async def _call_for_thread(self, method: str, thread: str, **more: Json) -> None:
        await self._caller.call(method, {"threadId": thread, **more})


def _agent_turns(working: Mapping[str, str]) -> Iterator[str]:
    """Return the turns that agents have started."""
    return filter(None, working.values())
