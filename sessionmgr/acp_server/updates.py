"""Events of a session, as updates of the protocol. No I/O.

Each character of a message is sent once, whether the provider streams its messages, sends them
whole, or both. The texts of sub-agents are left out, as in a run's result; their tool calls are
included. Raw frames, output on stderr and the details of processes stay in the store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from sessionmgr.acp_server.dialect import text_block
from sessionmgr.acp_server.tool_calls import ToolCallUpdates, unique_id
from sessionmgr.model import (
    NOTHING_USED,
    CompactionCompleted,
    CompactionFailed,
    CompactionStarted,
    ErrorOccurred,
    ImageReceived,
    MessageReceived,
    MessageSent,
    MessageStreamed,
    PlanUpdated,
    PolicyViolation,
    ReasoningReceived,
    ReasoningStreamed,
    RetryScheduled,
    RunCompleted,
    RunEnded,
    SessionStatsUpdated,
    StallSuspected,
    TokenUsageUpdated,
    ToolApprovalDenied,
    ToolApprovalGranted,
    ToolApprovalRequested,
    ToolCallEnded,
    ToolCallStarted,
    ToolCallUpdated,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sessionmgr.acp_server.dialect import AcpDialect, Author
    from sessionmgr.acp_server.params import JsonObject
    from sessionmgr.model import AnyEvent

Updates: TypeAlias = "list[JsonObject]"

LONGEST_TITLE: Final = 80
_PRIORITIES: Final = ("high", "medium", "low")
_STATUSES: Final = {"in_progress": "in_progress", "completed": "completed"}


class _MessagePieces:
    """The streamed pieces of one author's current message."""

    def __init__(self, author: Author) -> None:
        self.author: Final = author
        self.name = ""
        """The id of the message in the protocol; empty between two messages."""
        self._streamed: list[str] = []  # to extend a string would copy it each time
        self._message_id: str | None = None
        """The provider's id."""

    def begin(self, name: str, message_id: str | None) -> None:
        """Begin a message."""
        self.name, self._message_id = name, message_id
        self._streamed = []

    def add(self, delta: str) -> None:
        """Add a piece to the message."""
        self._streamed.append(delta)

    def text(self) -> str:
        """Return all pieces."""
        return "".join(self._streamed)

    def end(self) -> None:
        """End the message."""
        self.begin("", None)

    def includes(self, message_id: str | None) -> bool:
        """Return whether text with this id continues the current message."""
        is_same = None in {message_id, self._message_id} or message_id == self._message_id
        return bool(self.name) and is_same


class TurnUsage:
    """Tokens of the current turn, which may have several runs, and the costs of the session."""

    def __init__(self) -> None:
        self._earlier: Usage = NOTHING_USED
        """The tokens of the turn's earlier runs."""
        self._tokens: Usage = NOTHING_USED
        self._cost: float | None = None
        """The cost of the current run."""
        self._session_cost: float | None = None
        self._window: int | None = None
        self._used: int | None = None

    def begin_turn(self) -> None:
        """Begin the next turn."""
        self._earlier = self._tokens = NOTHING_USED
        self._cost = None

    def add(self, event: TokenUsageUpdated) -> None:
        """Add the increase that an event reports."""
        self._tokens += event.usage
        if event.cost is not None:
            self._add_cost(event.cost)

    def end(self, event: RunEnded) -> None:
        """Replace the sums of the run by those of its end."""
        self._earlier += event.usage or self._tokens
        if event.cost is not None and event.cost.usd is not None:
            self._add_cost(event.cost.usd - (self._cost or 0.0))
        self._tokens, self._cost = NOTHING_USED, None

    def set_session_cost(self, usd: float | None) -> None:
        """Set the cost of the session's earlier runs."""
        self._session_cost = usd

    def set_context(self, event: SessionStatsUpdated) -> None:
        """Note the size of the context."""
        self._window = event.context_window or self._window
        self._used = self._used if event.context_used is None else event.context_used

    def _add_cost(self, usd: float) -> None:
        self._cost = (self._cost or 0.0) + usd
        self._session_cost = (self._session_cost or 0.0) + usd

    def update(self) -> Updates:
        """Return the update, once the size of the context is known."""
        if self._window is None or self._used is None:
            return []
        update: JsonObject = {
            "sessionUpdate": "usage_update",
            "used": self._used,
            "size": self._window,
        }
        if self._session_cost is not None:
            update["cost"] = {"amount": self._session_cost, "currency": "USD"}
        return [update]

    def totals(self) -> JsonObject | None:
        """Return the tokens of the turn for the answer to its prompt; None if none are known."""
        used = self._earlier + self._tokens
        if used == NOTHING_USED:
            return None
        return {
            "totalTokens": used.input + used.cached_input + used.cache_write + used.output,
            "inputTokens": used.input,
            "outputTokens": used.output,
            "thoughtTokens": used.reasoning,
            "cachedReadTokens": used.cached_input,
            "cachedWriteTokens": used.cache_write,
        }


class EventTranslator:
    """Translator of one session's events, which come in their order."""

    def __init__(self, dialect: AcpDialect) -> None:
        self._dialect: Final = dialect
        self._agent: Final = _MessagePieces("agent_message")
        self._thought: Final = _MessagePieces("agent_thought")
        self._tools: Final = ToolCallUpdates(dialect)
        self._sent: Final[set[str]] = set()
        """The ids of the user's messages of the current run."""
        self._own: Final[list[str]] = []
        """The texts that the client has added to the run, and need not be shown."""
        self._run_id: str | None = None
        self._last = 0
        """The number of the run's messages without an id of the provider."""
        self._title: str | None = None
        self._compaction_id = "compaction"
        self.usage: Final = TurnUsage()

    def begin_turn(self) -> None:
        """Begin the next turn."""
        self.usage.begin_turn()
        self._own.clear()

    def add_own(self, text: str) -> None:
        """Note a message of the client to the running turn."""
        self._own.append(text)

    def updates(
        self, events: Sequence[AnyEvent], *, images: Mapping[str, str], is_replay: bool = False
    ) -> Updates:
        """Return the updates for events; `images` are theirs in base64, by their hashes."""
        updates: Updates = []
        for event in events:
            if event.run_id != self._run_id:
                self._begin_run(event.run_id)
            if isinstance(event, ToolCallUpdated):
                self._tools.add_output(event)
                continue
            updates += self._tools.flush()
            if isinstance(event, ImageReceived):
                updates += self._image(event.media_type, images[event.blob])
            else:
                updates += self._updates(event, is_replay=is_replay)
        return updates + self._tools.flush()

    def _begin_run(self, run_id: str | None) -> None:
        self._run_id, self._last = run_id, 0
        self._agent.end()
        self._thought.end()
        self._sent.clear()

    def _image(self, media_type: str, data: str) -> Updates:
        block: JsonObject = {"type": "image", "mimeType": media_type, "data": data}
        return self._dialect.whole("agent_message", self._name(None), [block])

    def _updates(self, event: AnyEvent, *, is_replay: bool) -> Updates:
        match event:
            case MessageStreamed() if not event.parent_tool_call_id:
                return self._streamed(self._agent, event.delta, event.message_id)
            case MessageReceived(role="assistant") if not event.parent_tool_call_id:
                return self._whole(self._agent, event.content, event.message_id)
            case ReasoningStreamed() if not event.parent_tool_call_id:
                return self._streamed(self._thought, event.delta, None)
            case ReasoningReceived() if not event.parent_tool_call_id:
                return self._whole(self._thought, event.content, None)
            case MessageSent():
                return self._user_message(event, is_replay=is_replay)
            case PlanUpdated(entries=entries):
                return [
                    self._dialect.plan(
                        [
                            {
                                "content": entry.content,
                                "priority": entry.priority
                                if entry.priority in _PRIORITIES
                                else "medium",
                                "status": _STATUSES.get(entry.status, "pending"),
                            }
                            for entry in entries
                        ]
                    )
                ]
            case _:
                return self._tool_updates(event) or self._other_updates(event)

    def _tool_updates(self, event: AnyEvent) -> Updates:
        match event:
            case ToolCallStarted():
                return self._tools.start(event)
            case ToolCallEnded():
                return self._tools.end(event)
            case ToolApprovalRequested():
                return self._tools.ask(event)
            case ToolApprovalGranted():
                return self._tools.grant(event)
            case ToolApprovalDenied():
                return self._tools.deny(event)
            case RunEnded():
                self.usage.end(event)
                is_completed = isinstance(event, RunCompleted)
                return [*self._tools.end_all(is_completed=is_completed), *self.usage.update()]
            case _:
                return []

    def _other_updates(self, event: AnyEvent) -> Updates:
        match event:
            case TokenUsageUpdated():
                self.usage.add(event)
                return self.usage.update() if event.cost is not None else []
            case SessionStatsUpdated():
                self.usage.set_context(event)
                return self.usage.update()
            case RetryScheduled():
                self._agent.end()  # the message comes again from its beginning
                self._thought.end()
                why = event.failure.message if event.failure is not None else None
                return self._notice("info", f"Retry (attempt {event.attempt})", why)
            case ErrorOccurred():
                return self._notice(event.severity, event.failure.message)
            case StallSuspected():
                return self._notice("warning", f"Silent for {event.silent_for:.0f} s")
            case PolicyViolation():
                return self._notice("warning", event.rule, event.detail)
            case CompactionStarted() | CompactionCompleted() | CompactionFailed():
                return self._compaction(event)
            case _:
                return []

    # --- messages --------------------------------------------------------------------------------

    def _streamed(self, pieces: _MessagePieces, delta: str, message_id: str | None) -> Updates:
        if not pieces.includes(message_id):
            pieces.begin(self._name(message_id), message_id)
        if not delta:
            return []
        pieces.add(delta)
        return [self._dialect.chunk(pieces.author, pieces.name, text_block(delta))]

    def _whole(self, pieces: _MessagePieces, text: str, message_id: str | None) -> Updates:
        is_same = pieces.includes(message_id)
        streamed = pieces.text() if is_same else ""
        name = pieces.name if is_same else self._name(message_id)
        pieces.end()
        if not streamed:
            return self._dialect.whole(pieces.author, name, [text_block(text)]) if text else []
        if not text.startswith(streamed):
            return self._dialect.replaced(pieces.author, name, text)
        rest = text[len(streamed) :]
        return [self._dialect.chunk(pieces.author, name, text_block(rest))] if rest else []

    def _user_message(self, event: MessageSent, *, is_replay: bool) -> Updates:
        is_lost = event.follow_up and event.state == "dropped"
        if event.message_id in self._sent or is_lost:
            return []
        self._sent.add(event.message_id)
        updates: Updates = []
        if self._title is None:
            self._title = title_of(event.content)
            updates.append(
                {
                    "sessionUpdate": "session_info_update",
                    "title": self._title,
                    "updatedAt": event.at,
                }
            )
        is_own = not event.follow_up or event.content in self._own
        if is_own and event.follow_up:
            self._own.remove(event.content)
        if is_replay or not is_own or (event.follow_up and self._dialect.has_states):
            blocks = [text_block(event.content)]
            updates += self._dialect.whole("user_message", event.message_id, blocks)
        return updates

    def _name(self, message_id: str | None) -> str:
        """Return the id of a message in the protocol; without the provider's id, a number."""
        self._last += 1
        return unique_id(self._run_id, message_id or f"message-{self._last}")

    # --- notices ---------------------------------------------------------------------------------

    def _notice(self, severity: str, title: str, description: str | None = None) -> Updates:
        if not self._dialect.has_notices:
            return []
        notice: JsonObject = {"sessionUpdate": "notice", "severity": severity, "title": title}
        if description:
            notice["description"] = description
        return [notice]

    def _compaction(
        self, event: CompactionStarted | CompactionCompleted | CompactionFailed
    ) -> Updates:
        if not self._dialect.has_compaction:
            return []
        if isinstance(event, CompactionStarted):
            self._compaction_id = self._name(None)
            status = "in_progress"
        else:
            status = "completed" if isinstance(event, CompactionCompleted) else "failed"
        return [
            {
                "sessionUpdate": "compaction_update",
                "compactionId": self._compaction_id,
                "status": status,
            }
        ]


def title_of(prompt: str) -> str:
    """Return the title of a session: the first line of its first prompt, shortened."""
    lines = prompt.strip().splitlines()
    line = " ".join(lines[0].split()) if lines else ""
    return line if len(line) <= LONGEST_TITLE else f"{line[: LONGEST_TITLE - 1]}…"
