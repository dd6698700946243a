"""The state of a run between Codex's frames."""

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
    """The agents of a run, at any depth of calls."""

    def __init__(self) -> None:
        self.working: Final[dict[str, str]] = {}
        """The running turns, by thread; "" for an agent whose turn is about to start."""
        self.addressed: Final[set[str]] = set()
        """Agents that received a message, and may start a turn for it or not."""
        self.loaded: Final[dict[str, None]] = {}
        """The loaded threads, in the order in which their agents were called."""
        self._callers: Final[dict[str, str]] = {}
        self._have_begun: Final[set[str]] = set()

    @property
    def any_called(self) -> bool:
        """Whether any agent was called."""
        return bool(self._callers)

    def caller(self, thread: str) -> str:
        """Return the tool call that started a thread; "" if it is not known."""
        return self._callers.get(thread, "")

    def call(self, thread: str, call: str = "", *, works: bool = False) -> None:
        """Record that an agent was called, and by which tool call if that is known.

        With `works`, its turn is about to start.
        """
        self.loaded[thread] = None
        if call:
            self._callers.setdefault(thread, call)
        if works and thread not in self._have_begun:
            self.working.setdefault(thread, "")

    def turn_started(self, thread: str, turn: str) -> None:
        """Record that an agent's turn has started."""
        self.loaded[thread] = None
        self._have_begun.add(thread)
        self.addressed.discard(thread)
        self.working[thread] = turn

    def turn_ended(self, thread: str, turn: str) -> bool:
        """Record that an agent's turn has ended; return False if another turn is running."""
        if self.working.get(thread) not in ("", turn):
            return False
        del self.working[thread]
        return True

    def thread_closed(self, thread: str) -> None:
        """Record that a thread is no longer loaded."""
        self.loaded.pop(thread, None)
        self.working.pop(thread, None)
        self.addressed.discard(thread)


FULLY_USED: Final = 100
"""Per cent."""


@dataclass(eq=False)
class CodexState:
    """The state of one run."""

    thread: str = ""
    """The run's own thread; others are those of its agents."""
    turn: str = ""
    """The run's turn that was started last."""
    model: str | None = None
    cwd: str | None = None
    hello: ServerInfo | None = None
    """The app-server's description of itself."""
    settings: ThreadSettings | None = None
    """The settings of the thread, as reported last."""
    permission: Permission | None = None
    """The permission in force, if it differs from the negotiated one."""
    text: str = ""
    """The last message of the run's own thread."""
    started: bool = False
    is_turning: bool = False
    """Whether a turn of the run's own thread is running."""
    early: list[Event] = field(default_factory=list[Event])
    """Events held back until the run has started."""
    retries: dict[str, int] = field(default_factory=dict[str, int])
    """The number of consecutive retries in each thread."""
    retried: Json = None
    """The error of the last retry in the run's own thread; None once the model has answered."""
    tools: dict[str, KnownItem] = field(default_factory=dict[str, KnownItem])
    """Tool calls that have not ended."""
    threads: dict[str, str] = field(default_factory=dict[str, str])
    """The thread of each of these calls."""
    has_commanded: bool = False
    """Whether a command was run."""
    compacting: dict[str, str] = field(default_factory=dict[str, str])
    """The thread of each running compaction, by item id."""
    agents: CalledAgents = field(default_factory=CalledAgents)
    """The agents of the run, which have threads of their own."""
    unanswered: set[str] = field(default_factory=set[str])
    """Our ids of messages after which the model has not said or done anything."""
    usage: TokenUsage | None = None
    """The usage that was reported last."""
    is_resumed: bool = False
    booked: dict[str, CodexTokenCounts] = field(default_factory=dict[str, CodexTokenCounts])
    """The usage of each thread, as reported last."""
    limits: AccountLimits | None = None
    warned: set[str] = field(default_factory=set[str])
    """Warnings about no thread that this or another run has already reported."""
    _streams: dict[str, int] = field(default_factory=dict[str, int])

    def open(self, opened: ThreadOpenResult) -> None:
        """Record the thread that was opened, and its settings."""
        self.thread, self.settings = opened.thread.id, opened.settings
        self.model, self.cwd = opened.model, opened.cwd

    @property
    def resets_at(self) -> float | None:
        """When the exhausted limit resets, if one is exhausted."""
        if self.limits is None:
            return None
        windows = (self.limits.primary, self.limits.secondary)
        spent = [each for each in windows if each is not None and each.used_percent >= FULLY_USED]
        return max((each.resets_at for each in spent if each.resets_at), default=None)

    def begin(self, item_id: str) -> None:
        """Record the start of a message; an abandoned one may have had the same id."""
        self._streams[item_id] = self._streams.get(item_id, 0) + 1

    def name(self, item_id: str) -> str:
        """Return our name of a message."""
        times = self._streams.get(item_id, 1)
        return item_id if times < 2 else f"{item_id}.{times}"


def limit_events(limits: AccountLimits, state: CodexState) -> list[Event]:
    """Return the events for changed limits; empty if nothing has changed."""
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
    """Add known values to an update, which omits those that did not change."""
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
