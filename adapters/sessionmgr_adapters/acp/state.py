"""The state of one run with an ACP agent: what the normaliser knows, and the driver reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from sessionmgr.adapter.kit import ImageCollector
from sessionmgr.model import NOTHING_USED
from sessionmgr_adapters.acp.decode import as_dict, as_text

if TYPE_CHECKING:
    from sessionmgr.model import Json, Usage
    from sessionmgr_adapters.acp.frames import PromptEnded, SessionModes
    from sessionmgr_adapters.acp.tool_calls import AcpToolCall
    from sessionmgr_adapters.acp.updates import ConfigOption, StateUpdate

_NAMES_OF_WORK: Final = ("terminalId", "toolCallId", "sessionId")
"""The fields that name work in the background."""


@dataclass(slots=True)
class IncompleteMessage:
    """A message, or a piece of reasoning, that is not complete."""

    kind: Literal["agent", "thought"]
    id: str | None = None
    parts: list[str] = field(default_factory=list[str])


@dataclass(slots=True, kw_only=True)
class AcpTurn:
    """What a turn has produced so far."""

    text: str = ""
    """The last complete message."""
    has_text: bool = False
    has_tools: bool = False
    is_answered: bool = False
    """Whether a text has followed the last tool call."""
    usage: Usage = NOTHING_USED
    """The tokens that events have reported."""
    has_error: bool = False
    """Whether the agent has reported that the turn fails; the message says why."""
    is_running: bool = False
    """Whether the agent has shown that it works on the turn, which has not ended."""
    has_background_ended: bool = False
    """Whether work in the background has ended, after which an agent may begin a turn by itself."""
    end: PromptEnded | StateUpdate | None = None
    """The end of the turn, once it is reported."""
    ended_calls: set[str] = field(default_factory=set[str])
    """The tool calls that have a result; later news of them is ignored."""
    messages: dict[str, str] = field(default_factory=dict[str, str])
    """The complete messages that have an id."""


@dataclass(slots=True, kw_only=True)
class AcpState:
    """The state of a run."""

    session: str = ""
    """The session's name; updates of other sessions are those of its sub-agents."""
    is_replaying: bool = False
    """Whether a session is being loaded: its updates are old, and give no events."""
    is_resumed: bool = False
    has_begun: bool = False
    """Whether a prompt of this run was sent."""
    turn: AcpTurn = field(default_factory=AcpTurn)
    """The present turn, or the last one."""
    inserted: set[str] = field(default_factory=set[str])
    """The user's messages that are in the conversation, by the agent's names for them."""
    background: tuple[Json, ...] = ()
    """The agent's work in the background, as reported last (version 2)."""
    cancellable: set[str] = field(default_factory=set[str])
    """The tool calls, terminals and sub-agents that can be cancelled one by one (version 2)."""
    mode: str | None = None
    """The mode in force, as reported last."""
    modes: SessionModes | None = None
    """The modes of the session, if it has them apart from its config options."""
    options: tuple[ConfigOption, ...] = ()
    """The config options, as reported last."""
    message: IncompleteMessage | None = None
    calls: dict[str, AcpToolCall] = field(default_factory=dict[str, "AcpToolCall"])
    """The tool calls without a result."""
    terminals: dict[str, str] = field(default_factory=dict[str, str])
    """The output of the terminals that calls show, of each as much of its end as is kept."""
    compactions: set[str] = field(default_factory=set[str])
    """The compactions that run."""
    context: tuple[int, int] | None = None
    """The used part and the size of the model's context, as reported last."""
    cost: float | None = None
    """The cost of the session that was reported last, or before this run; None if it is unknown.

    An agent that counts from the start of its process has 0 before a run that resumes a session.
    """
    reports_cost: bool = False
    """Whether a cost was reported in this run."""
    limit: object = None
    """The rate limit, as reported last."""
    currencies: set[str] = field(default_factory=set[str])
    """Currencies in which a cost was reported that events cannot have."""
    images: ImageCollector = field(default_factory=ImageCollector)
    subagents: dict[str, AcpState] = field(default_factory=dict[str, "AcpState"])
    """The states of the sessions of sub-agents, by name."""

    def note_work(self) -> None:
        """Note a sign of work; after the end of a turn it is that of work in the background."""
        self.turn.is_running = self.turn.is_running or self.turn.end is None

    def begin_next_turn(self) -> None:
        """Begin another turn of the run, unless the present one has not ended."""
        if self.turn.end is not None:
            self.turn = AcpTurn(ended_calls=self.turn.ended_calls)

    def insert(self, message_id: str | None) -> None:
        """Note that a message of the user is in the conversation: a turn begins with it."""
        if message_id is not None and message_id not in self.inserted:
            self.inserted.add(message_id)
            self.begin_next_turn()

    def cancellable_work(self) -> list[tuple[str, Json]]:
        """Return the work in the background that can be cancelled, with its names."""
        found: list[tuple[str, Json]] = []
        for each in self.background:
            names = [as_text(as_dict(each).get(field)) for field in _NAMES_OF_WORK]
            found += [(name, each) for name in names if name in self.cancellable]
        return found

    def call(self, name: str) -> AcpToolCall | None:
        """Return a tool call without a result, of the session or of a sub-agent."""
        children = (each.call(name) for each in self.subagents.values())
        return self.calls.get(name) or next((each for each in children if each is not None), None)

    @property
    def text(self) -> str:
        """The last complete message of the turn."""
        return self.turn.text

    def option(self, category: str) -> ConfigOption | None:
        """Return the config option of a category, such as `mode` or `model`.

        Of several, it is the one with that id; the others concern the same, such as its provider.
        """
        found = [each for each in self.options if each.category == category]
        return next((each for each in found if each.id == category), found[0] if found else None)

    def call_of_terminal(self, terminal_id: str) -> AcpToolCall | None:
        """Return the tool call that shows a terminal."""
        return next((each for each in self.calls.values() if terminal_id in each.terminals), None)
