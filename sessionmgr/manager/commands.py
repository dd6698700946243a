"""The commands of a session's recorder: methods that put them into its inbox, in order with events.

None of them waits. What a command writes is a transition (`transitions`), which the recorder calls
when it takes the command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

import msgspec

from sessionmgr.manager.inbox import Urgency
from sessionmgr.manager.terminal_events import PROVIDERS_OWN
from sessionmgr.manager.transitions import Transitions

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessionmgr.adapter.approval import Decision
    from sessionmgr.manager.approval import Question
    from sessionmgr.manager.inbox import Inbox
    from sessionmgr.manager.lazy_event import Latch
    from sessionmgr.manager.run_state import RunState
    from sessionmgr.model import Event, Negotiation


Fate: TypeAlias = Literal["sent", "dropped", "unknown"]
"""What can become of a message to a running turn."""


class Command(NamedTuple):
    """An item of the inbox: a transition and its arguments."""

    write: Callable[..., None]
    arguments: tuple[object, ...] = ()


REST: Final = Command(Transitions.rest)
"""That there has been no work for a while."""


class Message(msgspec.Struct):
    """A message to the running turn, which is given to it once it is stored."""

    entry: RunState
    message_id: str
    content: str
    written: Latch
    is_begun: bool = False
    """Whether the provider may have it."""
    fate: Fate | None = None
    """What became of it; None for good, if its recorder died meanwhile."""


class Commands:
    """The commands of one session's recorder."""

    __slots__ = ("_inbox",)

    def __init__(self, inbox: Inbox) -> None:
        self._inbox: Final = inbox

    def admit(self, run: RunState, *, has_turn: bool) -> None:
        """Store the admission of a run, and dispatch the run if it has its turn already.

        Raises:
            InboxFull: Too much waits already.
        """
        self._inbox.put_request(Command(Transitions.admitted, (run, has_turn)))

    def dispatch(self, run: RunState) -> None:
        """Dispatch a run that has its turn now."""
        self._put(Transitions.dispatched, run)

    def stop(self, run: RunState) -> None:
        """Note that another than its provider has ended a run that had its turn."""
        self._put(Transitions.stopped, run)

    def task_ended(self, run: RunState, error: BaseException | None) -> None:
        """End a run whose task returned, was cancelled, or raised `error`."""
        # Its provider's own end is on its way with the last events: this can go with them.
        is_told = error is None and run.stop is not None and run.stop.cause in PROVIDERS_OWN
        command = Command(Transitions.task_ended, (run, error))
        self._inbox.put(command, Urgency.SOON if is_told else Urgency.NOW)

    def task_never_began(self, run: RunState, why: str) -> None:
        """End a run whose task will not begin."""
        self._put(Transitions.task_never_began, run, why)

    def task_abandoned(self, run: RunState) -> None:
        """End a run whose task does not end."""
        self._put(Transitions.task_abandoned, run)

    def ask(self, run: RunState, question: Question) -> None:
        """Store the provider's question, and have it decided.

        Raises:
            InboxFull: Too much waits already.
        """
        self._inbox.put_request(Command(Transitions.asked, (run, question)))

    def withdraw(self, run: RunState, question: Question) -> None:
        """Store that the provider needs no answer any more."""
        self._put(Transitions.withdrawn, run, question)

    def decide(self, run: RunState, question: Question, decision: Decision) -> None:
        """Store the answer to a question, and give it to the provider."""
        self._put(Transitions.decided, run, question, decision)

    def append(self, message: Message) -> None:
        """Store a message to the running turn, and give it to the provider.

        Raises:
            InboxFull: Too much waits already.
        """
        self._inbox.put_request(Command(Transitions.appended, (message,)))

    def delivered(self, message: Message, fate: Fate) -> None:
        """Store what became of such a message."""
        self._put(Transitions.delivered, message, fate)

    def note(self, run: RunState, *events: Event) -> None:
        """Store what the manager itself has to say of a run: a timeout's warning, say."""
        self._put(Transitions.noted, run, events)

    def narrow(self, run: RunState, negotiation: Negotiation) -> None:
        """Store that the provider can do less for a run than it was thought to."""
        self._put(Transitions.narrowed, run, negotiation)

    def close(self, written: Latch) -> None:
        """Close the session when its last run is over; it takes no more.

        Raises:
            InboxFull: Too much waits already.
        """
        self._inbox.put_request(Command(Transitions.closed, (written,)))

    def close_if_idle(self) -> None:
        """Close the session, whose last run is over."""
        self._put(Transitions.closed)

    def rest(self) -> None:
        """Let the session sleep if it has no work."""
        self._inbox.put(REST)

    def _put(self, write: Callable[..., None], *arguments: object) -> None:
        self._inbox.put(Command(write, arguments))
