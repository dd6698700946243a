"""The threads that an app-server has loaded: what is known of them, kept a while, and given back.

A thread costs memory, and as long as it is loaded nobody else can go on with it: not many stay
loaded between the runs of their sessions, and not for long. What was settled with one is
remembered, so that a run which wants the same need not settle it again.
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
"""Seconds for a thread to be given back."""
MAX_IDLE_THREADS: Final = 16
"""Threads that an app-server keeps for the next runs of their sessions."""
IDLE_FOR: Final = 60.0
"""Seconds that it keeps one: as long, nobody else can go on with it."""
# What is said of a thread where it begins, or where it is gone on with, and not in both.
_OPENING_ONLY: Final = frozenset({"threadId", "excludeTurns", "dynamicTools"})
# What can be changed while it is loaded: what is in force is looked at, not what was asked for.
_CHANGED: Final = frozenset({"approvalPolicy", "sandbox"})


def thread_terms(params: dict[str, Json]) -> bytes:
    """Return what a run wants of a thread, to be compared."""
    return encode_json(
        {name: params[name] for name in sorted(params) if name not in _OPENING_ONLY | _CHANGED}
    )


@dataclass
class _LoadedThread:
    """A thread that is loaded, and what was settled with it."""

    terms: bytes
    """What was wanted of it when it was opened."""
    opened: bytes
    """What was answered then."""
    settings: ThreadSettings | None = None
    """What is in force since, as it was told last."""

    def answer(self) -> bytes:
        """Return what would be answered if it was gone on with now."""
        if self.settings is None:
            return self.opened
        answered = parse_json(self.opened)
        assert isinstance(answered, dict)
        answered["approvalPolicy"] = self.settings.approval_policy
        answered["sandbox"] = self.settings.sandbox_policy
        answered["approvalsReviewer"] = self.settings.approvals_reviewer
        return encode_json(answered)


class ThreadCache:
    """The threads of one app-server; it is asked by `ask`, and `clear_away` ends their commands."""

    def __init__(self, ask: Ask, clear_away: Callable[[str], Awaitable[None]]) -> None:
        self._ask: Final = ask
        self._clear_away: Final = clear_away
        self._loaded: Final[dict[str, _LoadedThread]] = {}
        self._idle: Final[dict[str, trio.CancelScope]] = {}
        """The threads that are kept, the one that was used last behind the others."""
        self._closing: Final[dict[str, trio.Event]] = {}
        self._nursery: trio.Nursery | None = None

    def open(self, nursery: trio.Nursery) -> None:
        """Use a nursery for the tasks that give threads back."""
        self._nursery = nursery

    def end(self) -> None:
        """Note that the app-server has exited, and its threads with it."""
        self._nursery = None
        for closed in self._closing.values():
            closed.set()

    # --- what there is ---------------------------------------------------------------------------

    def __contains__(self, thread: str) -> bool:
        """Whether a thread is loaded, or about to be given back."""
        return thread in self._loaded or thread in self._closing

    def is_unwanted(self, thread: str) -> bool:
        """Whether a thread is about to be given back."""
        return thread in self._closing

    def note_opened(self, thread: str, call: RpcCall, answer: bytes) -> None:
        """Note that a thread was opened, by which call and with which answer."""
        self._loaded[thread] = _LoadedThread(thread_terms(call.params), answer)

    def note_settings(self, thread: str, settings: ThreadSettings) -> None:
        """Note what is in force in a thread."""
        if thread in self._loaded:
            self._loaded[thread].settings = settings

    def note_closed(self, thread: str) -> None:
        """Note that a thread is not loaded any more."""
        self._unkeep(thread)
        self._loaded.pop(thread, None)
        if thread in self._closing:
            self._closing[thread].set()

    # --- kept for the next run -------------------------------------------------------------------

    def add_idle(self, thread: str) -> bool:
        """Keep a thread for a while, if it is loaded; the oldest is given back for it."""
        if thread not in self._loaded or self._nursery is None:
            return False
        scope = self._idle[thread] = trio.CancelScope()
        self._nursery.start_soon(self._hold_idle, thread, scope)
        if len(self._idle) > MAX_IDLE_THREADS:
            self.drop(next(iter(self._idle)))
        return True

    async def _hold_idle(self, thread: str, scope: trio.CancelScope) -> None:
        with scope:
            await trio.sleep(IDLE_FOR)
            self.drop(thread)

    def _unkeep(self, thread: str) -> bool:
        scope = self._idle.pop(thread, None)
        if scope is not None:
            scope.cancel()
        return scope is not None

    def reuse(self, call: RpcCall) -> bytes | None:
        """Take a thread that is kept as a call wants it; return the answer to that, or None."""
        thread = str(call.params.get("threadId"))
        if call.method != "thread/resume" or thread not in self._idle:
            return None
        if self._loaded[thread].terms != thread_terms(call.params):
            return None
        self._unkeep(thread)
        return self._loaded[thread].answer()

    # --- given back ------------------------------------------------------------------------------

    async def release(self, thread: str) -> None:
        """Give a kept thread back, and wait until another program can open it."""
        await trio.lowlevel.checkpoint()
        self.drop(thread)
        closing = self._closing.get(thread)
        if closing is not None:
            await closing.wait()

    def drop(self, thread: str) -> None:
        """Give a thread back, if it is kept for the next run."""
        if self._unkeep(thread):
            self.release_idle(thread)

    def expect_unwanted(self, thread: str) -> None:
        """Note that a thread is to be given back as soon as it is opened."""
        self._closing.setdefault(thread, trio.Event())

    def give_up(self, thread: str) -> None:
        """Note that a thread was not opened after all."""
        if thread in self._closing:
            self._closing.pop(thread).set()

    def release_idle(self, thread: str, turn: str | None = None) -> None:
        """Give a thread back; with a `turn` end that before, and with "" what one has left."""
        self._loaded.pop(thread, None)
        if self._nursery is not None:
            closed = self._closing.setdefault(thread, trio.Event())
            self._nursery.start_soon(self._release_thread, thread, turn, closed)

    async def _release_thread(self, thread: str, turn: str | None, closed: trio.Event) -> None:
        about: dict[str, Json] = {"threadId": thread}
        with trio.move_on_after(UNLOAD_TIMEOUT):
            if turn is not None:  # it was left in the middle of it
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
