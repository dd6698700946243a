"""The cache of threads that an app-server has loaded.

A thread costs memory, and no other program can resume it while it is loaded, so only a few stay
loaded between the runs of their sessions, and for a short time. The cache remembers the settings of
each, so that a run with the same settings can skip opening it.

A thread that is being unloaded is in `_closing`, with an event that is set when Codex has closed
it, or after a time limit. A call that resumes the thread waits for this event, since Codex would
otherwise resume a thread that it is about to close.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.model import encode_json, parse_json
from sessionmgr.wire import RpcResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeAlias

    from sessionmgr.adapter.kit import RpcCall
    from sessionmgr.model import Json
    from sessionmgr.wire import RpcErrorResponse
    from sessionmgr_adapters.codex.frames import ThreadSettings

    Ask: TypeAlias = Callable[[str, dict[str, Json]], Awaitable[RpcResponse | RpcErrorResponse]]

UNLOAD_TIMEOUT: Final = 10.0
"""Time limit in seconds for unloading a thread."""
MAX_IDLE_THREADS: Final = 16
"""Maximum number of idle threads that stay loaded for the next runs of their sessions."""
IDLE_FOR: Final = 60.0
"""Seconds for which an idle thread stays loaded; no other program can resume it meanwhile."""
# Parameters that only one of `thread/start` and `thread/resume` has.
_OPENING_ONLY: Final = frozenset({"threadId", "excludeTurns", "dynamicTools"})
# Settings that can change while a thread is loaded: those in force are compared separately.
_CHANGED: Final = frozenset({"approvalPolicy", "sandbox"})


def thread_terms(params: dict[str, Json]) -> bytes:
    """Return the parameters by which two openings of a thread are compared."""
    return encode_json(
        {name: params[name] for name in sorted(params) if name not in _OPENING_ONLY | _CHANGED}
    )


@dataclass
class _LoadedThread:
    """A loaded thread and its settings."""

    terms: bytes
    """The terms with which it was opened."""
    opened: bytes
    """The answer to that call."""
    settings: ThreadSettings | None = None
    """The settings that Codex has reported since."""

    def answer(self) -> bytes:
        """Return the answer that resuming it now would give."""
        if self.settings is None:
            return self.opened
        answered = parse_json(self.opened)
        assert isinstance(answered, dict)
        answered["approvalPolicy"] = self.settings.approval_policy
        answered["sandbox"] = self.settings.sandbox_policy
        answered["approvalsReviewer"] = self.settings.approvals_reviewer
        return encode_json(answered)


class ThreadCache:
    """The threads of one app-server.

    Args:
        ask: Sends a call to the app-server.
        clear_away: Kills the processes that a thread's commands left running.
    """

    def __init__(self, ask: Ask, clear_away: Callable[[str], Awaitable[None]]) -> None:
        self._ask: Final = ask
        self._clear_away: Final = clear_away
        self._loaded: Final[dict[str, _LoadedThread]] = {}
        self._idle: Final[dict[str, trio.CancelScope]] = {}
        """The idle threads, the most recently used last."""
        self._closing: Final[dict[str, trio.Event]] = {}
        self._nursery: trio.Nursery | None = None

    def open(self, nursery: trio.Nursery) -> None:
        """Use a nursery for the tasks that unload threads."""
        self._nursery = nursery

    def end(self) -> None:
        """Record that the app-server has exited, and release all waiters."""
        self._nursery = None
        for closed in self._closing.values():
            closed.set()

    # --- state -----------------------------------------------------------------------------------

    def __contains__(self, thread: str) -> bool:
        """Whether a thread is loaded or being unloaded."""
        return thread in self._loaded or thread in self._closing

    def is_unloading(self, thread: str) -> bool:
        """Whether a thread is being unloaded."""
        return thread in self._closing

    def note_opened(self, thread: str, call: RpcCall, answer: bytes) -> None:
        """Record that a thread was opened, with the call and its answer."""
        self._loaded[thread] = _LoadedThread(thread_terms(call.params), answer)

    def note_settings(self, thread: str, settings: ThreadSettings) -> None:
        """Record the settings in force in a thread."""
        if thread in self._loaded:
            self._loaded[thread].settings = settings

    def note_closed(self, thread: str) -> None:
        """Record that a thread is no longer loaded."""
        self._unkeep(thread)
        self._loaded.pop(thread, None)
        if thread in self._closing:
            self._closing[thread].set()

    # --- idle threads ----------------------------------------------------------------------------

    def add_idle(self, thread: str) -> bool:
        """Keep a loaded thread for a while; unload the oldest idle one if there are too many."""
        if thread not in self._loaded or self._nursery is None:
            return False
        scope = self._idle[thread] = trio.CancelScope()
        self._nursery.start_soon(self._hold_idle, thread, scope)
        if len(self._idle) > MAX_IDLE_THREADS:
            self.unload_if_idle(next(iter(self._idle)))
        return True

    async def _hold_idle(self, thread: str, scope: trio.CancelScope) -> None:
        with scope:
            await trio.sleep(IDLE_FOR)
            self.unload_if_idle(thread)

    def _unkeep(self, thread: str) -> bool:
        scope = self._idle.pop(thread, None)
        if scope is not None:
            scope.cancel()
        return scope is not None

    def reuse(self, call: RpcCall) -> bytes | None:
        """Take an idle thread that has the wanted terms; return the answer to the call, or None."""
        thread = str(call.params.get("threadId"))
        if call.method != "thread/resume" or thread not in self._idle:
            return None
        if self._loaded[thread].terms != thread_terms(call.params):
            return None
        self._unkeep(thread)
        return self._loaded[thread].answer()

    # --- unloading -------------------------------------------------------------------------------

    async def release(self, thread: str) -> None:
        """Unload an idle thread, and wait until another program can resume it."""
        await trio.lowlevel.checkpoint()
        self.unload_if_idle(thread)
        closing = self._closing.get(thread)
        if closing is not None:
            await closing.wait()

    def unload_if_idle(self, thread: str) -> None:
        """Unload a thread if it is idle."""
        if self._unkeep(thread):
            self.unload(thread)

    def mark_for_unloading(self, thread: str) -> None:
        """Mark a thread that must be unloaded as soon as it is open."""
        self._closing.setdefault(thread, trio.Event())

    def unmark_for_unloading(self, thread: str) -> None:
        """Remove the mark of a thread that was not opened after all."""
        if thread in self._closing:
            self._closing.pop(thread).set()

    def unload(self, thread: str, turn: str | None = None) -> None:
        """Unload a thread, ending its work first if a run left it in the middle of a turn.

        Args:
            thread: The thread.
            turn: The running turn, to interrupt; "" if only commands may be left; None if the
                thread has finished its work.
        """
        self._loaded.pop(thread, None)
        if self._nursery is not None:
            closed = self._closing.setdefault(thread, trio.Event())
            self._nursery.start_soon(self._release_thread, thread, turn, closed)

    async def _release_thread(self, thread: str, turn: str | None, closed: trio.Event) -> None:
        about: dict[str, Json] = {"threadId": thread}
        with trio.move_on_after(UNLOAD_TIMEOUT):
            if turn is not None:  # the run left it before its work had ended
                if turn:
                    await self._ask("turn/interrupt", {**about, "turnId": turn})
                await self._ask("thread/backgroundTerminals/clean", about)
                await self._clear_away(thread)
            answer = await self._ask("thread/unsubscribe", about)
            if isinstance(answer, RpcResponse):
                await closed.wait()
        closed.set()
        if self._closing.get(thread) is closed:
            del self._closing[thread]
