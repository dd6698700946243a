"""The bounded queue in front of an actor, and those who wait for room in it.

A deque and nothing else on the fast path: a channel would make every message a trip
through the scheduler. What the system itself says (Down, Exit, TaskDone) is never refused;
it is bounded by what the actor asked for.
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
    """A message for `handle_info`, told apart from a cast by this wrapper."""

    __slots__ = ("message",)

    def __init__(self, message: object) -> None:
        self.message = message


class SendWaiter(InfoMessage):
    """Somebody who waits in `send` for room, with what they want to say."""

    __slots__ = ("task",)

    def __init__(self, message: object, task: Task) -> None:
        super().__init__(message)
        self.task = task


class Mailbox:
    """Messages in the order they came; at most `bound` of them."""

    __slots__ = ("abandoned", "bound", "queue", "waiting")

    def __init__(self, bound: int) -> None:
        self.bound = bound
        # Casts as they are, calls as `Caller`, all else as `Info`.
        self.queue: deque[Any] = deque()
        self.waiting: OrderedDict[SendWaiter | PendingCall, None] | None = None
        # Calls in the queue whose callers went away.
        self.abandoned = 0

    def has_room(self) -> bool:
        """Say whether one more message fits, after forgetting abandoned calls."""
        if len(self.queue) < self.bound:
            return True
        if self.abandoned:
            self.abandoned = 0
            self.discard(_is_abandoned)
        return len(self.queue) < self.bound

    def discard(self, unwanted: Callable[[object], bool]) -> None:
        """Take out of the queue whatever is `unwanted`."""
        kept = [item for item in self.queue if not unwanted(item)]
        self.queue.clear()
        self.queue.extend(kept)
        self.admit_waiters()

    def add_waiter(self, entry: SendWaiter | PendingCall) -> None:
        """Put `entry` at the end of those who wait for room."""
        if self.waiting is None:
            self.waiting = OrderedDict()
        self.waiting[entry] = None

    def remove_waiter(self, entry: SendWaiter | PendingCall) -> None:
        """Note that the task behind `entry` waits no more."""
        if self.waiting is not None and entry in self.waiting:
            del self.waiting[entry]
        else:
            self.abandoned += 1

    def admit_waiters(self) -> None:
        """Let in those who wait, first come first served, as far as there is room."""
        while self.waiting and len(self.queue) < self.bound:
            entry, _ = self.waiting.popitem(last=False)
            self.queue.append(entry)
            if isinstance(entry, SendWaiter):
                reschedule(entry.task)

    def close(self, owner: MailboxOwner, reason: ExitReason) -> None:
        """Turn away everybody who still wants something of `owner`, which has ended."""
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
