"""The commands of a session's recorder: methods that put them into its inbox, in order with events.

None of them waits. What a command writes is a transition (`transitions`), which the recorder calls
when it takes the command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from sessionmgr.manager.inbox import CommitUrgency
from sessionmgr.manager.terminal_events import PROVIDER_CAUSES
from sessionmgr.manager.transitions import RecordTransitions

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessionmgr.adapter import Decision
    from sessionmgr.manager.inbox import Inbox
    from sessionmgr.manager.lazy_event import LazyEvent
    from sessionmgr.manager.pending_approval import PendingApproval
    from sessionmgr.manager.run_state import MessageFate, RunState, TurnMessage
    from sessionmgr.model import Event, Negotiation


class RecorderCommand(NamedTuple):
    """An item of the inbox: a transition and its arguments."""

    write: Callable[..., None]
    arguments: tuple[object, ...] = ()


SLEEP_IF_IDLE: Final = RecorderCommand(RecordTransitions.session_idle)
"""That there has been no work for a while."""


class RecorderCommands:
    """The commands of one session's recorder."""

    __slots__ = ("_inbox",)

    def __init__(self, inbox: Inbox) -> None:
        self._inbox: Final = inbox

    def admit(self, run: RunState, *, has_turn: bool) -> None:
        """Store the admission of a run, and dispatch the run if it has its turn already.

        Raises:
            InboxFull: Too much waits already.
        """
        self._inbox.put_request(RecorderCommand(RecordTransitions.run_admitted, (run, has_turn)))

    def dispatch(self, run: RunState) -> None:
        """Dispatch a run that has its turn now."""
        self._put(RecordTransitions.run_dispatched, run)

    def stop(self, run: RunState) -> None:
        """Note that another than its provider has ended a run that had its turn."""
        self._put(RecordTransitions.run_stopped, run)

    def task_ended(self, run: RunState, error: BaseException | None) -> None:
        """End a run whose task returned, was cancelled, or raised `error`."""
        # Its provider's own end is on its way with the last events: this can go with them.
        is_told = error is None and run.stop is not None and run.stop.cause in PROVIDER_CAUSES
        command = RecorderCommand(RecordTransitions.task_ended, (run, error))
        self._inbox.put(command, CommitUrgency.SOON if is_told else CommitUrgency.NOW)

    def task_not_started(self, run: RunState, why: str) -> None:
        """End a run whose task will not begin."""
        self._put(RecordTransitions.task_not_started, run, why)

    def task_abandoned(self, run: RunState) -> None:
        """End a run whose task does not end."""
        self._put(RecordTransitions.task_abandoned, run)

    def request_approval(self, run: RunState, question: PendingApproval) -> None:
        """Store the provider's question, and have it decided.

        Raises:
            InboxFull: Too much waits already.
        """
        self._inbox.put_request(
            RecorderCommand(RecordTransitions.approval_requested, (run, question))
        )

    def withdraw_approval(self, run: RunState, question: PendingApproval) -> None:
        """Store that the provider needs no answer any more."""
        self._put(RecordTransitions.approval_withdrawn, run, question)

    def decide_approval(self, run: RunState, question: PendingApproval, decision: Decision) -> None:
        """Store the answer to a question, and give it to the provider."""
        self._put(RecordTransitions.approval_decided, run, question, decision)

    def append_message(self, message: TurnMessage) -> None:
        """Store a message to the running turn, and give it to the provider.

        Raises:
            InboxFull: Too much waits already.
        """
        self._inbox.put_request(RecorderCommand(RecordTransitions.message_appended, (message,)))

    def record_delivery(self, message: TurnMessage, fate: MessageFate) -> None:
        """Store what became of such a message."""
        self._put(RecordTransitions.message_delivered, message, fate)

    def record_events(self, run: RunState, *events: Event) -> None:
        """Store what the manager itself has to say of a run: a timeout's warning, say."""
        self._put(RecordTransitions.events_noted, run, events)

    def narrow_negotiation(self, run: RunState, negotiation: Negotiation) -> None:
        """Store that the provider can do less for a run than it was thought to."""
        self._put(RecordTransitions.negotiation_narrowed, run, negotiation)

    def close_session(self, written: LazyEvent) -> None:
        """Close the session when its last run is over; it takes no more.

        Raises:
            InboxFull: Too much waits already.
        """
        self._inbox.put_request(RecorderCommand(RecordTransitions.session_closed, (written,)))

    def close_idle_session(self) -> None:
        """Close the session, whose last run is over."""
        self._put(RecordTransitions.session_closed)

    def sleep_if_idle(self) -> None:
        """Let the session sleep if it has no work."""
        self._inbox.put(SLEEP_IF_IDLE)

    def _put(self, write: Callable[..., None], *arguments: object) -> None:
        self._inbox.put(RecorderCommand(write, arguments))
