"""State of `normalise`: what a run remembers from one frame to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from sessionmgr.adapter.kit.images import ImageCollector
from sessionmgr_adapters.claude.spending import Spending

if TYPE_CHECKING:
    from sessionmgr.model import Failure
    from sessionmgr_adapters.claude.frames import Assistant, RateLimitInfo, StreamEvent, ToolUse

Credential: TypeAlias = Literal["api_key", "subscription", "unknown"]

SYNTHETIC: Final = "<synthetic>"


class State:
    """What is known so far."""

    def __init__(self, spending: Spending | None = None) -> None:
        self.spending: Final = spending or Spending()
        self.session_id: str | None = None
        self.version: str | None = None
        self.credential: Credential = "unknown"
        self.started = False
        self.compacting = False
        self.images: Final = ImageCollector()
        self.tools: Final[dict[str, ToolUse]] = {}
        """Calls without a result."""
        self._called: Final[set[str]] = set()
        self._ended: Final[set[str]] = set()
        self.tasks: Final[set[str]] = set()
        """What goes on in the background."""
        self.sent_away: Final[set[str]] = set()
        """Calls that were to go on there from the first."""
        self.error: Assistant | None = None
        """What the API said last, if that was an error, in the turn that is on."""
        self.limit: RateLimitInfo | None = None
        self.failure: Failure | None = None
        """What went wrong in the last turn."""
        self.streaming: str | None = None
        """The message that is streamed."""
        self._judged: Final[set[str]] = set()
        self._blocks: Final[dict[str, int]] = {}
        self._context: float | None = None

    def name(self, message_id: str) -> str:
        """Return the name of the next block of a message."""
        place = self._blocks.get(message_id, 0)
        self._blocks[message_id] = place + 1
        return f"{message_id}/{place}"

    def streamed_name(self, frame: StreamEvent) -> str:
        """Return the name of the block of which more is streamed."""
        return f"{frame.api_message_id or self.streaming}/{frame.event.index}"

    def judge(self, tool_use_id: str) -> bool:
        """Note that a call was ruled upon; False if that was known."""
        if tool_use_id in self._judged:
            return False
        self._judged.add(tool_use_id)
        return True

    def begin(self, call: ToolUse) -> bool:
        """Note a call of a tool; False if that was known."""
        if call.id in self._called:
            return False
        self._called.add(call.id)
        self.tools[call.id] = call
        if isinstance(call.input, dict) and call.input.get("run_in_background") is True:
            self.sent_away.add(call.id)
        return True

    def end(self, tool_use_id: str) -> bool:
        """Note that a call has its result; False if that was known."""
        if tool_use_id in self._ended:
            return False
        self._ended.add(tool_use_id)
        return True

    @property
    def used_tools(self) -> bool:
        """Whether a tool was called."""
        return bool(self._called)

    def fill(self, frame: Assistant) -> None:
        """Note how full the context is."""
        usage = frame.message.usage
        if usage is not None and frame.message.model != SYNTHETIC:
            self._context = (
                (usage.input_tokens or 0)
                + (usage.cache_read_input_tokens or 0)
                + (usage.cache_creation_input_tokens or 0)
            )

    @property
    def context(self) -> int | None:
        """How many tokens the last call of the model has read."""
        return None if self._context is None else int(self._context)
