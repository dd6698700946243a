"""What must be remembered of a run from one frame of Codex's to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessionmgr_adapters.codex.agents import Agents

if TYPE_CHECKING:
    from sessionmgr.model import Event, Json
    from sessionmgr_adapters.codex.frames import Limits, TokenCounts, TokenUsage
    from sessionmgr_adapters.codex.initialize import Credential
    from sessionmgr_adapters.codex.items import KnownItem


SPENT: Final = 100
"""Per cent."""


class State:
    """What is known so far."""

    def __init__(self) -> None:
        self.thread = ""
        """The thread of the run; others are those of agents that it has called."""
        self.turn = ""
        """The turn of the run that was begun last."""
        self.model: str | None = None
        self.cwd: str | None = None
        self.version: str | None = None
        self.credential: Credential = "unknown"
        self.text = ""
        """The last message of the run's own."""
        self.started = False
        self.is_turning = False
        """Whether a turn of the run's own is on."""
        self.early: list[Event] = []
        """What is told once it has begun."""
        self.retries: Final[dict[str, int]] = {}
        """How often Codex has tried again in a thread, one time after the other."""
        self.retried: Json = None
        """What it said when it last did in the run's own; nothing once the model has answered."""
        self.tools: Final[dict[str, KnownItem]] = {}
        """Calls that are not over."""
        self.threads: Final[dict[str, str]] = {}
        """In which threads these were made."""
        self.has_commanded = False
        """Whether a command was run."""
        self.compacting: Final[dict[str, str]] = {}
        """In which threads the context is being made shorter, by the name of the item."""
        self.agents: Final = Agents()
        """The agents that were called, in threads of their own."""
        self.unanswered: Final[set[str]] = set()
        """Our names of messages after which the model has neither said nor done anything."""
        self.usage: TokenUsage | None = None
        """What was told last."""
        self.is_resumed = False
        self.booked: Final[dict[str, TokenCounts]] = {}
        """What each thread had used when it was last told."""
        self.limits: Limits | None = None
        self.warned: set[str] = set()
        """Warnings that concern no thread and were already reported in this or another run."""
        self._streams: Final[dict[str, int]] = {}

    @property
    def resets_at(self) -> float | None:
        """When the limit begins anew that is used up, if one is."""
        if self.limits is None:
            return None
        windows = (self.limits.primary, self.limits.secondary)
        spent = [each for each in windows if each is not None and each.used_percent >= SPENT]
        return max((each.resets_at for each in spent if each.resets_at), default=None)

    def begin(self, item_id: str) -> None:
        """Note that a message begins: one that was given up may have had the same name."""
        self._streams[item_id] = self._streams.get(item_id, 0) + 1

    def name(self, item_id: str) -> str:
        """Return our name of a message."""
        times = self._streams.get(item_id, 1)
        return item_id if times < 2 else f"{item_id}.{times}"
