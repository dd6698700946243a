"""What must be remembered of a run from one frame of Codex's to the next."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from sessionmgr.model import Event, Json, RateLimitUpdated, format_optional_timestamp
from sessionmgr_adapters.codex.frames import CodexTokenCounts
from sessionmgr_adapters.codex.items import KnownItem

if TYPE_CHECKING:
    from sessionmgr.model import Permission
    from sessionmgr_adapters.codex.frames import (
        AccountLimits,
        LimitWindow,
        ServerInfo,
        ThreadOpenResult,
        ThreadSettings,
        TokenUsage,
    )


class CalledAgents:
    """What is known of them, however deep they were called."""

    def __init__(self) -> None:
        self.working: Final[dict[str, str]] = {}
        """The turns that are on, by thread; "" for one that is about to begin."""
        self.addressed: Final[set[str]] = set()
        """Those that were told something, and may begin a turn for that or not: it is not said."""
        self.loaded: Final[dict[str, None]] = {}
        """The threads that are there, the first one called first."""
        self._callers: Final[dict[str, str]] = {}
        self._have_begun: Final[set[str]] = set()

    @property
    def add(self) -> bool:
        """Whether there were any."""
        return bool(self._callers)

    def caller(self, thread: str) -> str:
        """Return by which call a thread was begun; "" if that is not known."""
        return self._callers.get(thread, "")

    def call(self, thread: str, call: str = "", *, works: bool = False) -> None:
        """Note that an agent was called, by a call if that is known.

        With `works`, its turn is about to begin.
        """
        self.loaded[thread] = None
        if call:
            self._callers.setdefault(thread, call)
        if works and thread not in self._have_begun:
            self.working.setdefault(thread, "")

    def turn_started(self, thread: str, turn: str) -> None:
        """Note that an agent's turn begins."""
        self.loaded[thread] = None
        self._have_begun.add(thread)
        self.addressed.discard(thread)
        self.working[thread] = turn

    def turn_ended(self, thread: str, turn: str) -> bool:
        """Note that an agent's turn is over; False if that was not the one that is on."""
        if self.working.get(thread) not in ("", turn):
            return False
        del self.working[thread]
        return True

    def thread_closed(self, thread: str) -> None:
        """Note that a thread is there no more."""
        self.loaded.pop(thread, None)
        self.working.pop(thread, None)
        self.addressed.discard(thread)


FULLY_USED: Final = 100
"""Per cent."""


@dataclass(eq=False)
class CodexState:
    """What is known so far."""

    thread: str = ""
    """The thread of the run; others are those of agents that it has called."""
    turn: str = ""
    """The turn of the run that was begun last."""
    model: str | None = None
    cwd: str | None = None
    hello: ServerInfo | None = None
    """What the app-server has said of itself."""
    settings: ThreadSettings | None = None
    """What is in force for the thread, as it was told last."""
    permission: Permission | None = None
    """What is in force, if that is not what was settled before."""
    text: str = ""
    """The last message of the run's own."""
    started: bool = False
    is_turning: bool = False
    """Whether a turn of the run's own is on."""
    early: list[Event] = field(default_factory=list[Event])
    """What is told once it has begun."""
    retries: dict[str, int] = field(default_factory=dict[str, int])
    """How often Codex has tried again in a thread, one time after the other."""
    retried: Json = None
    """What it said when it last did in the run's own; nothing once the model has answered."""
    tools: dict[str, KnownItem] = field(default_factory=dict[str, KnownItem])
    """Calls that are not over."""
    threads: dict[str, str] = field(default_factory=dict[str, str])
    """In which threads these were made."""
    has_commanded: bool = False
    """Whether a command was run."""
    compacting: dict[str, str] = field(default_factory=dict[str, str])
    """In which threads the context is being made shorter, by the name of the item."""
    agents: CalledAgents = field(default_factory=CalledAgents)
    """The agents that were called, in threads of their own."""
    unanswered: set[str] = field(default_factory=set[str])
    """Our names of messages after which the model has neither said nor done anything."""
    usage: TokenUsage | None = None
    """What was told last."""
    is_resumed: bool = False
    booked: dict[str, CodexTokenCounts] = field(default_factory=dict[str, CodexTokenCounts])
    """What each thread had used when it was last told."""
    limits: AccountLimits | None = None
    warned: set[str] = field(default_factory=set[str])
    """Warnings that concern no thread and were already reported in this or another run."""
    _streams: dict[str, int] = field(default_factory=dict[str, int])

    def open(self, opened: ThreadOpenResult) -> None:
        """Note which thread was opened, and with what in force."""
        self.thread, self.settings = opened.thread.id, opened.settings
        self.model, self.cwd = opened.model, opened.cwd

    @property
    def resets_at(self) -> float | None:
        """When the limit begins anew that is used up, if one is."""
        if self.limits is None:
            return None
        windows = (self.limits.primary, self.limits.secondary)
        spent = [each for each in windows if each is not None and each.used_percent >= FULLY_USED]
        return max((each.resets_at for each in spent if each.resets_at), default=None)

    def begin(self, item_id: str) -> None:
        """Note that a message begins: one that was given up may have had the same name."""
        self._streams[item_id] = self._streams.get(item_id, 0) + 1

    def name(self, item_id: str) -> str:
        """Return our name of a message."""
        times = self._streams.get(item_id, 1)
        return item_id if times < 2 else f"{item_id}.{times}"


def limit_events(limits: AccountLimits, state: CodexState) -> list[Event]:
    """Return the events that news of the limits are; none if they are no news."""
    limits = _merge_limits(limits, state.limits)
    if limits == state.limits:
        return []
    state.limits = limits
    return [
        _limit(f"{limits.limit_id or 'codex'}/{name}", window, limits)
        for name, window in (("primary", limits.primary), ("secondary", limits.secondary))
        if window is not None
    ]


def _merge_limits(limits: AccountLimits, known: AccountLimits | None) -> AccountLimits:
    """Add what is known already: an update, maybe for another run, leaves out what it has not."""
    if known is None or (limits.limit_id or known.limit_id) != known.limit_id:
        return limits
    return replace(
        limits,
        limit_id=known.limit_id,
        primary=limits.primary or known.primary,
        secondary=limits.secondary or known.secondary,
    )


def _limit(bucket: str, window: LimitWindow, limits: AccountLimits) -> Event:
    return RateLimitUpdated(
        bucket=bucket,
        state=limits.rate_limit_reached_type or "allowed",
        resets_at=format_optional_timestamp(window.resets_at),
        utilisation=window.used_percent / 100,
    )
