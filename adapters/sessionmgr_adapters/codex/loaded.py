"""Threads that stay loaded between the runs of their sessions: not many, and not for long.

What was settled with one is remembered, so that a run which wants the same need not
settle it again.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.model import encode_json, parse_json

if TYPE_CHECKING:
    from sessionmgr.model import Json
    from sessionmgr_adapters.codex.frames import SettingsChanged

KEPT: Final = 16
"""Threads that an app-server keeps for nobody."""
IDLE_FOR: Final = 60.0
"""Seconds that it keeps one: as long, nobody else can go on with it."""
# What is said of a thread where it begins, or where it is gone on with, and not in both.
_ONCE: Final = frozenset({"threadId", "excludeTurns", "dynamicTools"})
# What can be changed while it is loaded: what is in force is looked at, not what was asked for.
_CHANGED: Final = frozenset({"approvalPolicy", "sandbox"})


def terms_of(params: dict[str, Json]) -> bytes:
    """Return what a run wants of a thread, to be compared."""
    return encode_json(
        {name: params[name] for name in sorted(params) if name not in _ONCE | _CHANGED}
    )


class Loaded:
    """A thread that is loaded, and what was settled with it."""

    def __init__(self, terms: bytes, opened: bytes) -> None:
        self.terms: Final = terms
        """What was wanted of it when it was opened."""
        self.opened: Final = opened
        """What was answered then."""
        self.told: SettingsChanged | None = None
        """What is in force since, as it was told last."""

    def answer(self) -> bytes:
        """Return what would be answered if it was gone on with now."""
        if self.told is None:
            return self.opened
        settings = self.told.thread_settings
        answered = parse_json(self.opened)
        assert isinstance(answered, dict)
        answered["approvalPolicy"] = settings.approval_policy
        answered["sandbox"] = settings.sandbox_policy
        answered["approvalsReviewer"] = settings.approvals_reviewer
        return encode_json(answered)


class Shelf:
    """The threads that are kept for nobody, the one that was used last behind the others."""

    def __init__(self) -> None:
        self._places: Final[OrderedDict[str, trio.CancelScope]] = OrderedDict()

    def __contains__(self, thread: str) -> bool:
        """Whether a thread is kept."""
        return thread in self._places

    def put(self, thread: str) -> trio.CancelScope:
        """Keep a thread; whoever waits for its time to be over does that in the scope."""
        scope = self._places[thread] = trio.CancelScope()
        return scope

    def take(self, thread: str) -> bool:
        """Keep a thread no longer; False if it was not kept."""
        scope = self._places.pop(thread, None)
        if scope is not None:
            scope.cancel()
        return scope is not None

    def surplus(self) -> list[str]:
        """Return the threads that are too many, the oldest first."""
        return list(self._places)[: max(0, len(self._places) - KEPT)]
