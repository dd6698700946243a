"""The commands of a session's recorder: methods that put them into its inbox, in order with events.

No command waits. Each one names a transition (`transitions`), which the recorder calls when it
takes the command out of the inbox.
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
    from sessionmgr.manager.run_state import DeliveryState, RunState, TurnMessage
    from sessionmgr.model import Event, Negotiation


class RecorderCommand(NamedTuple):
    """An item of the inbox: a transition and its arguments."""

    write: Callable[..., None]
    arguments: tuple[object, ...] = ()


SLEEP_IF_IDLE: Final = RecorderCommand(RecordTransitions.session_idle)
"""The command that reports an idle timeout."""


class RecorderCommands:
    """The commands of one session's recorder."""

    __slots__ = ("_inbox",)

    def __init__(self, inbox: Inbox) -> None:
        self._inbox: Final = inbox

    def admit(self, run: RunState, *, is_current: bool) -> None:
        """Store the admission of a run, and dispatch the run if it is active already.

        Raises:
            InboxFull: Too many items wait in the inbox.
        """
        self._inbox.put_request(RecorderCommand(RecordTransitions.run_admitted, (run, is_current)))

    def dispatch(self, run: RunState) -> None:
        """Dispatch a run that is the active one now."""
        self._put(RecordTransitions.run_dispatched, run)

    def stop(self, run: RunState) -> None:
        """Note that the manager, not the provider, ends a dispatched run."""
        self._put(RecordTransitions.run_stopped, run)

    def task_ended(self, run: RunState, error: BaseException | None) -> None:
        """End a run whose task returned, was cancelled, or raised `error`."""
        # The provider's own end is in the inbox with the last events: this can share their commit.
        is_reported = error is None and run.stop is not None and run.stop.cause in PROVIDER_CAUSES
        command = RecorderCommand(RecordTransitions.task_ended, (run, error))
        self._inbox.put(command, CommitUrgency.SOON if is_reported else CommitUrgency.NOW)

    def task_not_started(self, run: RunState, why: str) -> None:
        """End a run whose task will not begin."""
        self._put(RecordTransitions.task_not_started, run, why)

    def task_abandoned(self, run: RunState) -> None:
        """End a run whose task does not end."""
        self._put(RecordTransitions.task_abandoned, run)

    def request_approval(self, run: RunState, question: PendingApproval) -> None:
        """Store an approval request of the provider, and start its decision.

        Raises:
            InboxFull: Too many items wait in the inbox.
        """
        self._inbox.put_request(
            RecorderCommand(RecordTransitions.approval_requested, (run, question))
        )

    def withdraw_approval(self, run: RunState, question: PendingApproval) -> None:
        """Store that the provider no longer needs the decision."""
        self._put(RecordTransitions.approval_withdrawn, run, question)

    def decide_approval(self, run: RunState, question: PendingApproval, decision: Decision) -> None:
        """Store a decision, and send it to the provider."""
        self._put(RecordTransitions.approval_decided, run, question, decision)

    def append_message(self, message: TurnMessage) -> None:
        """Store a message to the running turn, and send it to the provider.

        Raises:
            InboxFull: Too many items wait in the inbox.
        """
        self._inbox.put_request(RecorderCommand(RecordTransitions.message_appended, (message,)))

    def record_delivery(self, message: TurnMessage, delivery: DeliveryState) -> None:
        """Store the delivery state of such a message."""
        self._put(RecordTransitions.message_delivered, message, delivery)

    def record_events(self, run: RunState, *events: Event) -> None:
        """Store events of the manager itself about a run, such as the warning of a timeout."""
        self._put(RecordTransitions.events_noted, run, events)

    def narrow_negotiation(self, run: RunState, negotiation: Negotiation) -> None:
        """Store that the provider supports less than was negotiated for a run."""
        self._put(RecordTransitions.negotiation_narrowed, run, negotiation)

    def close_session(self, written: LazyEvent) -> None:
        """Close the session when its last run is over; it accepts no more runs.

        Raises:
            InboxFull: Too many items wait in the inbox.
        """
        self._inbox.put_request(RecorderCommand(RecordTransitions.session_closed, (written,)))

    def close_idle_session(self) -> None:
        """Close the session, whose last run is over."""
        self._put(RecordTransitions.session_closed)

    def sleep_if_idle(self) -> None:
        """Put the session to sleep if it has no work."""
        self._inbox.put(SLEEP_IF_IDLE)

    def _put(self, write: Callable[..., None], *arguments: object) -> None:
        self._inbox.put(RecorderCommand(write, arguments))
