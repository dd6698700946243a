"""Current activity of a job in a few words, derived from its run's events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessionmgr.model import (
    MessageReceived,
    MessageStreamed,
    ReasoningReceived,
    ReasoningStreamed,
    RunEnded,
    RunStarted,
    TokenUsageUpdated,
    ToolApprovalDenied,
    ToolApprovalGranted,
    ToolApprovalRequested,
    ToolCallCompleted,
    ToolCallFailed,
    ToolCallStarted,
    tool_summary,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sessionmgr.model import AnyEvent, Json

STARTING: Final = "starting"
STOPPING: Final = "stopping"
WAITING: Final = "waiting for approval"
WIDTH: Final = 80
_PHASES: Final[dict[type[object], str]] = {
    RunStarted: "thinking",
    ReasoningStreamed: "thinking",
    ReasoningReceived: "thinking",
    MessageStreamed: "writing",
    MessageReceived: "writing",
    ToolCallCompleted: "thinking",
    ToolCallFailed: "thinking",
    RunEnded: STOPPING,
}
_PHASES.update(dict.fromkeys(RunEnded.__subclasses__(), STOPPING))


class ActivityTracker:
    """Activity of one run: what it does, since when, and its usage so far."""

    def __init__(self, now: float) -> None:
        self.text: str = STARTING
        self.since = now
        self.tokens = 0
        self.usd: float | None = None
        self._phase = STARTING
        self._tools: Final[dict[str, str]] = {}
        self._questions: Final[set[str]] = set()

    def update(self, events: Iterable[AnyEvent], now: float) -> None:
        """Update the activity from new events.

        Args:
            events: The events, in order.
            now: The current time of the trio clock.
        """
        for event in events:
            self._phase = _PHASES.get(type(event), self._phase)
            match event:
                case ToolCallStarted():
                    self._tools[event.tool_call_id] = tool_label(event.tool_name, event.tool_input)
                case ToolCallCompleted() | ToolCallFailed():
                    self._tools.pop(event.tool_call_id, None)
                case ToolApprovalRequested():
                    self._questions.add(event.approval_id)
                case ToolApprovalGranted() | ToolApprovalDenied():
                    self._questions.discard(event.approval_id)
                case TokenUsageUpdated(usage=usage, cost=cost):
                    self.tokens += usage.input + usage.cache_write + usage.output
                    if cost is not None:
                        self.usd = (self.usd or 0.0) + cost
                case _:
                    pass
        self.set_text(self._current_text(), now)

    def set_text(self, text: str, now: float) -> None:
        """Set the text, and the time of the change if it differs.

        Args:
            text: The activity in a few words.
            now: The current time of the trio clock.
        """
        if text != self.text:
            self.text, self.since = text, now

    def _current_text(self) -> str:
        if self._phase == STOPPING or self.text == STOPPING:
            return STOPPING
        if self._questions:
            return WAITING
        if self._tools:
            return next(reversed(self._tools.values()))
        return self._phase


def tool_label(name: str, tool_input: Json) -> str:
    """Return a tool's name and the most informative part of its input, on one line.

    Args:
        name: The name of the tool.
        tool_input: The input of its call.
    """
    said = tool_summary(tool_input, WIDTH)
    return f"{name}: {said}" if said else name
