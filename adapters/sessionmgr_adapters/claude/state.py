"""State of `normalise`: of a run, and the usage of its process.

Claude Code's totals cover the whole session, across all processes that have served it, and a
resumed session includes its earlier usage. Newer versions also report the usage since the last
result. Older ones do not: for the first result of a resumed session, only the turn's own token
count is known then, and no cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from sessionmgr.adapter.kit import ImageCollector
from sessionmgr.model import Provenance, TokenUsageUpdated, Usage, UsageLedger, UsageReport
from sessionmgr_adapters.claude.frames import ModelUsage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sessionmgr.model import Failure
    from sessionmgr_adapters.claude.frames import (
        AssistantFrame,
        ClaudeTokenCounts,
        RateLimitInfo,
        ResultFrame,
        StreamEventFrame,
        ToolUse,
    )


class ProcessUsage:
    """Usage of one process: books its results in their order."""

    def __init__(self, *, resumed: bool = False) -> None:
        self._ledger = UsageLedger()
        self._is_behind = resumed
        """Whether the totals include usage that was never booked."""

    @property
    def total(self) -> Usage:
        """The usage that was booked."""
        return self._ledger.total

    def add_result(self, result: ResultFrame) -> TokenUsageUpdated | None:
        """Return the event for the usage that a result adds; None if it adds none."""
        report = self._report(result)
        self._ledger, booking = self._ledger.book(report)
        self._is_behind = False
        if booking.usage == Usage() and not booking.usd:
            return None
        return TokenUsageUpdated(
            usage=booking.usage,
            total=booking.total,
            cost=booking.usd,
            provenance=booking.provenance,
        )

    def _report(self, result: ResultFrame) -> UsageReport:
        if result.since_last is not None:
            return UsageReport(
                kind="delta",
                provider_session_id=result.session_id,
                usage=_sum(result.since_last),
                usd=sum(each.cost_usd for each in result.since_last.values()),
                provenance=Provenance.REPORTED,
            )
        meters = UsageReport(
            kind="total",
            provider_session_id=result.session_id,
            usage=_sum(result.model_usage),
            usd=result.total_cost_usd,
            provenance=Provenance.REPORTED,
        )
        if not self._is_behind:
            return meters
        total = self._ledger
        read, _ = self._ledger.book(meters)
        self._ledger = UsageLedger(total=total.total, cost=total.cost, meters=read.meters)
        turn = model_usage_of(result.usage) if result.usage else Usage()
        return UsageReport(kind="delta", provider_session_id=result.session_id, usage=turn)


def model_usage_of(counts: ModelUsage | ClaudeTokenCounts) -> Usage:
    """Return the usage of a model."""
    return Usage(
        input=int(counts.input_tokens or 0),
        cached_input=int(counts.cache_read_input_tokens or 0),
        cache_write=int(counts.cache_creation_input_tokens or 0),
        output=int(counts.output_tokens or 0),
        reasoning=int(counts.thinking_tokens) if isinstance(counts, ModelUsage) else 0,
    )


def _sum(models: Mapping[str, ModelUsage]) -> Usage:
    return sum(map(model_usage_of, models.values()), Usage())


Credential: TypeAlias = Literal["api_key", "subscription", "unknown"]

SYNTHETIC: Final = "<synthetic>"


class ClaudeState:
    """State of one run between frames."""

    def __init__(self, spending: ProcessUsage | None = None) -> None:
        self.usage: Final = spending or ProcessUsage()
        self.session_id: str | None = None
        self.version: str | None = None
        self.credential: Credential = "unknown"
        self.started = False
        self.compacting = False
        self.images: Final = ImageCollector()
        self.tools: Final[dict[str, ToolUse]] = {}
        """Calls without a result, by their ids."""
        self._called: Final[set[str]] = set()
        self._ended: Final[set[str]] = set()
        self.tasks: Final[set[str]] = set()
        """Ids of the background tasks."""
        self.background_calls: Final[set[str]] = set()
        """Ids of the calls that were started in the background."""
        self.error: AssistantFrame | None = None
        """The last message of the current turn that was an error of the API."""
        self.limit: RateLimitInfo | None = None
        self.failure: Failure | None = None
        """The failure of the last turn."""
        self.streaming: str | None = None
        """The id of the message that is streamed."""
        self._judged: Final[set[str]] = set()
        self._blocks: Final[dict[str, int]] = {}
        self.context: int | None = None
        """Number of tokens that the last call of the model has read."""

    def name(self, message_id: str) -> str:
        """Count a block of a message, and return its name."""
        place = self._blocks.get(message_id, 0)
        self._blocks[message_id] = place + 1
        return f"{message_id}/{place}"

    def streamed_name(self, frame: StreamEventFrame) -> str:
        """Return the name of the block whose text is streamed."""
        return f"{frame.api_message_id or self.streaming}/{frame.event.index}"

    def record_decision(self, tool_use_id: str) -> bool:
        """Record that a call was decided; return False if that was known."""
        return _add_name(tool_use_id, self._judged)

    def begin(self, call: ToolUse) -> bool:
        """Note a tool call; return False if it was known."""
        is_new = _add_name(call.id, self._called)
        if is_new:
            self.tools[call.id] = call
            if isinstance(call.input, dict) and call.input.get("run_in_background") is True:
                self.background_calls.add(call.id)
        return is_new

    def end(self, tool_use_id: str) -> bool:
        """Note that a call has its result; return False if that was known."""
        return _add_name(tool_use_id, self._ended)

    @property
    def used_tools(self) -> bool:
        """Whether a tool was called."""
        return bool(self._called)

    def record_context_size(self, frame: AssistantFrame) -> None:
        """Record the size of the context that a message reports."""
        usage = frame.message.usage
        if usage is not None and frame.message.model != SYNTHETIC:
            read = model_usage_of(usage)
            self.context = read.input + read.cached_input + read.cache_write


def _add_name(name: str, known: set[str]) -> bool:
    """Add a name, and return whether it was new."""
    is_new = name not in known
    known.add(name)
    return is_new
