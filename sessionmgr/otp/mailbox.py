"""Mailbox: the bounded queue of an actor, and the tasks that wait for room in it.

The fast path is a plain deque: a channel would make every message a trip through the scheduler.
System messages (Down, Exit, TaskDone) are never refused; their number is bounded by what the actor
requested.
"""

from __future__ import annotations

import enum
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any, Final, Protocol

from outcome import Error
from trio.lowlevel import Task, reschedule

from sessionmgr.otp.errors import actor_down

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessionmgr.otp.exit_reason import ExitReason


class CallState(enum.Enum):
    """State of a call."""

    OPEN = "open"
    """The caller waits."""
    ANSWERED = "answered"
    """The callee has answered."""
    GONE = "gone"
    """The caller no longer waits: it was cancelled, timed out, or the callee has ended."""


# Read for every message; the access through the enum would cost as much as the rest.
CALL_OPEN: Final = CallState.OPEN
CALL_ANSWERED: Final = CallState.ANSWERED
CALL_ABANDONED: Final = CallState.GONE


class PendingCall:
    """The part of a call that the callee's mailbox and record use; `Caller` is the whole."""

    __slots__ = ("progress",)

    progress: CallState

    def fail_callee_down(self, reason: ExitReason) -> None:
        """Raise `ActorDown` in the caller, if it still waits.

        Args:
            reason: The reason why the callee has ended.
        """
        raise NotImplementedError


class MailboxOwner(Protocol):
    """The part of a child's record that its mailbox uses."""

    @property
    def name(self) -> str:
        """The path of the child."""
        ...


class InfoMessage:
    """Message for `handle_info`; the wrapper distinguishes it from a cast."""

    __slots__ = ("message",)

    def __init__(self, message: object) -> None:
        self.message = message


class SendWaiter(InfoMessage):
    """Message of a task that waits in `send` for room."""

    __slots__ = ("task",)

    def __init__(self, message: object, task: Task) -> None:
        super().__init__(message)
        self.task = task


class Mailbox:
    """Messages in order of arrival; at most `bound` of them."""

    __slots__ = ("abandoned", "bound", "queue", "waiting")

    def __init__(self, bound: int) -> None:
        self.bound = bound
        # Casts as they are, calls as `Caller`, everything else as `InfoMessage`.
        self.queue: deque[Any] = deque()
        self.waiting: OrderedDict[SendWaiter | PendingCall, None] | None = None
        # Number of queued calls whose callers have given up.
        self.abandoned = 0

    def has_room(self) -> bool:
        """Return whether one more message fits, after dropping abandoned calls."""
        if len(self.queue) < self.bound:
            return True
        if self.abandoned:
            self.abandoned = 0
            self.discard(_is_abandoned)
        return len(self.queue) < self.bound

    def discard(self, unwanted: Callable[[object], bool]) -> None:
        """Remove the messages for which `unwanted` is true."""
        kept = [item for item in self.queue if not unwanted(item)]
        self.queue.clear()
        self.queue.extend(kept)
        self.admit_waiters()

    def add_waiter(self, entry: SendWaiter | PendingCall) -> None:
        """Append `entry` to the queue of those that wait for room."""
        if self.waiting is None:
            self.waiting = OrderedDict()
        self.waiting[entry] = None

    def remove_waiter(self, entry: SendWaiter | PendingCall) -> None:
        """Record that the task of `entry` no longer waits."""
        if self.waiting is not None and entry in self.waiting:
            del self.waiting[entry]
        else:
            self.abandoned += 1

    def admit_waiters(self) -> None:
        """Move waiting messages into the queue, first come first served, while there is room."""
        while self.waiting and len(self.queue) < self.bound:
            entry, _ = self.waiting.popitem(last=False)
            self.queue.append(entry)
            if isinstance(entry, SendWaiter):
                reschedule(entry.task)

    def close(self, owner: MailboxOwner, reason: ExitReason) -> None:
        """Fail all pending calls and sends to `owner`, which has ended."""
        while self.queue:
            item = self.queue.popleft()
            if isinstance(item, PendingCall):
                item.fail_callee_down(reason)
        while self.waiting:
            entry, _ = self.waiting.popitem(last=False)
            if isinstance(entry, PendingCall):
                entry.fail_callee_down(reason)
            else:
                reschedule(entry.task, Error(actor_down(owner.name, reason)))


def _is_abandoned(item: object) -> bool:
    return isinstance(item, PendingCall) and item.progress is CALL_ABANDONED
