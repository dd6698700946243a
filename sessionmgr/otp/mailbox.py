"""The bounded queue in front of an actor, and those who wait for room in it.

A deque and nothing else on the fast path: a channel would make every message a trip
through the scheduler. What the system itself says (Down, Exit, TaskDone) is never refused;
it is bounded by what the actor asked for.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any

from outcome import Error
from trio.lowlevel import Task, reschedule

from sessionmgr.otp.caller import CALL_ABANDONED, Caller, actor_down

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessionmgr.otp.child_task import ChildTask
    from sessionmgr.otp.exit_reason import ExitReason


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
        self.waiting: OrderedDict[SendWaiter | Caller, None] | None = None
        # Calls in the queue whose callers went away.
        self.abandoned = 0

    def has_room(self) -> bool:
        """Say whether one more message fits, after forgetting abandoned calls."""
        if len(self.queue) < self.bound:
            return True
        if self.abandoned:
            self.abandoned = 0
            self.discard(lambda item: isinstance(item, Caller) and item.progress is CALL_ABANDONED)
        return len(self.queue) < self.bound

    def discard(self, unwanted: Callable[[object], bool]) -> None:
        """Take out of the queue whatever is `unwanted`."""
        kept = [item for item in self.queue if not unwanted(item)]
        self.queue.clear()
        self.queue.extend(kept)
        self.admit_waiters()

    def add_waiter(self, entry: SendWaiter | Caller) -> None:
        """Put `entry` at the end of those who wait for room."""
        if self.waiting is None:
            self.waiting = OrderedDict()
        self.waiting[entry] = None

    def remove_waiter(self, entry: SendWaiter | Caller) -> None:
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

    def close(self, owner: ChildTask, reason: ExitReason) -> None:
        """Turn away everybody who still wants something of `owner`, which has ended."""
        while self.queue:
            item = self.queue.popleft()
            if isinstance(item, Caller):
                item.fail_callee_down(reason)
        while self.waiting:
            entry, _ = self.waiting.popitem(last=False)
            if isinstance(entry, Caller):
                entry.fail_callee_down(reason)
            else:
                reschedule(entry.task, Error(actor_down(owner, reason)))
