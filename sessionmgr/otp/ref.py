"""References to actors, calls and casts, and monitors.

The classes refer to each other, so they share a module: a call knows its caller's reference, and a
monitor the reference of its target.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
from outcome import Error, Outcome, Value
from trio.lowlevel import (
    Abort,
    Task,
    cancel_shielded_checkpoint,
    checkpoint_if_cancelled,
    current_task,
    enable_ki_protection,
    reschedule,
    wait_task_rescheduled,
)

from sessionmgr.otp.call_cycle import check_call_cycle
from sessionmgr.otp.child_handle import ChildHandle
from sessionmgr.otp.context import current_child, require_child
from sessionmgr.otp.errors import (
    ActorDown,
    AlreadyReplied,
    CallTimeout,
    MailboxFull,
    NotAnActor,
    actor_down,
)
from sessionmgr.otp.exit_reason import NOPROC, ExitReason
from sessionmgr.otp.mailbox import (
    CALL_ABANDONED,
    CALL_ANSWERED,
    CALL_OPEN,
    CallState,
    InfoMessage,
    Mailbox,
    PendingCall,
    SendWaiter,
)
from sessionmgr.otp.message import Call, Cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessionmgr.otp.call_deadlines import Expirable
    from sessionmgr.otp.child_task import ChildTask

# Without a bound: `Actor` stands above this module, because actors hold references.
A = TypeVar("A", covariant=True)
R = TypeVar("R")


class Ref(ChildHandle, Generic[A]):
    """Reference to one incarnation of a child; `A` is the class of the actor.

    It remains usable as an object when the child has ended: calls then raise `ActorDown`. A
    restarted child is a new incarnation and has a new reference; a name survives restarts, see
    `Registry.via`.
    """

    __slots__ = ()

    # Messages.

    @enable_ki_protection
    async def call(self, message: Call[R], timeout: float | None = 5.0) -> R:
        """Send a request and wait for the answer, whose type `message` determines.

        If the mailbox is full, this first waits for room. After `timeout` seconds (None: never) the
        call gives up, and a late answer is dropped; a request that the actor had not begun by then
        is never executed.

        Args:
            message: The message.
            timeout: Seconds to wait for the answer, by default 5; None waits without a limit.

        Raises:
            ActorDown: The actor has ended, or ends before it answers; `__cause__` is its crash.
            CallTimeout: The answer did not come in time.
            CallCycle: The actor waits, perhaps through others, for the caller.
            NotAnActor: This child has no mailbox.
        """
        callee = self._record
        if callee is None:
            raise ActorDown(repr(self), NOPROC)
        mailbox = callee.mailbox
        if mailbox is None or isinstance(message, Cast):
            raise _misdirected_error(callee, message)
        if callee.reason is not None:
            raise actor_down(callee.name, callee.reason)
        request = open_call(message, callee)
        if len(mailbox.queue) < mailbox.bound or mailbox.has_room():
            callee.receive(request)
        else:
            mailbox.add_waiter(request)
        if timeout is not None and timeout != math.inf:
            callee.owner.deadlines.add(request, timeout)
        answer: R = await wait_task_rescheduled(request.abandon)
        return answer

    @enable_ki_protection
    def cast(self, message: Cast) -> None:
        """Send a one-way message without waiting; a message to an ended actor is dropped.

        Args:
            message: The message.

        Raises:
            MailboxFull: The mailbox is full; nothing was changed.
            NotAnActor: This child has no mailbox.
        """
        record = self._record
        if record is None or record.reason is not None:
            return
        mailbox = record.mailbox
        if mailbox is None or isinstance(message, Call):
            raise _misdirected_error(record, message)
        queue = mailbox.queue
        if len(queue) >= mailbox.bound and not mailbox.has_room():
            raise MailboxFull(record.name, mailbox.bound)
        queue.append(message)
        if record.parked:
            record.wake()

    @enable_ki_protection
    async def send(self, message: object) -> None:
        """Send any object to the actor's `handle_info`; waits in order of arrival for room.

        Args:
            message: The message.

        Raises:
            ActorDown: The actor has ended, or ends while this waits for room.
            CallCycle: The mailbox is full, and the actor waits for the sender.
            NotAnActor: This child has no mailbox.
        """
        await checkpoint_if_cancelled()
        record = self._require_child_task()
        mailbox = _require_mailbox(record)
        if record.reason is not None:
            raise actor_down(record.name, record.reason)
        if mailbox.has_room():
            record.receive(InfoMessage(message))
            await cancel_shielded_checkpoint()
            return
        caller = current_child()
        if caller is not None:
            check_call_cycle(caller, record)
            caller.begin_waiting(record)
        entry = SendWaiter(message, current_task())
        mailbox.add_waiter(entry)

        def give_up(_raise_cancel: Callable[[], None]) -> Abort:
            mailbox.remove_waiter(entry)
            return Abort.SUCCEEDED

        try:
            await wait_task_rescheduled(give_up)
        finally:
            if caller is not None:
                caller.end_waiting(record)

    @enable_ki_protection
    def post(self, message: object) -> None:
        """Send any object to the actor's `handle_info` without waiting.

        Args:
            message: The message.

        Raises:
            MailboxFull: The mailbox is full; nothing was changed.
            NotAnActor: This child has no mailbox.
        """
        record = self.child_task()
        if record is None or record.reason is not None:
            return
        mailbox = _require_mailbox(record)
        if not mailbox.has_room():
            raise MailboxFull(record.name, mailbox.bound)
        record.receive(InfoMessage(message))

    # Monitors and links.

    def monitor(self) -> Monitor:
        """Monitor this child: the calling actor gets one `Down` in its `handle_info`.

        Raises:
            NotInActor: The caller is not an actor; `await ref.wait()` does the same.
        """
        watcher = require_child("ref.monitor()", "use `await ref.wait()`")
        _require_mailbox(watcher)
        monitor = Monitor(watcher, self)
        target = self.child_task()
        if target is None or target.reason is not None:
            watcher.notify(Down(monitor, self, NOPROC))
        else:
            monitor.attach(target)
        return monitor

    def link(self) -> None:
        """Link this child and the calling one: an end other than `Normal` ends both.

        An actor with `trap_exit` gets an `Exit` in its `handle_info` instead. A link to an ended
        child acts at once, with `NoProc`.

        Raises:
            NotInActor: The caller is not a supervised child.
        """
        one = require_child("ref.link()", "use `await ref.wait()`")
        other = self.child_task()
        if other is None or other.reason is not None:
            if one.make_exit_message is not None:
                one.notify(Exit(self, NOPROC))
            else:
                one.request_stop(NOPROC)
        elif other is not one:
            one.link(other)

    def unlink(self) -> None:
        """Remove the link."""
        one = require_child("ref.unlink()", "only a child that called link() has a link")
        other = self.child_task()
        if other is not None:
            one.unlink(other)


class ExitSource:
    """A monitor or task as the subject of a `Down`: a `Monitor` or a `TaskHandle`."""

    __slots__ = ()


class Monitor(ExitSource):
    """A monitor: the request for one `Down` about one child."""

    __slots__ = ("_target", "_watcher", "ref")

    def __init__(self, watcher: ChildTask, ref: Ref[Any]) -> None:
        self._watcher = watcher
        self._target: ChildTask | None = None
        self.ref = ref

    def attach(self, target: ChildTask) -> None:
        """Register with `target`, which notifies this monitor of its end.

        Args:
            target: The record of the monitored child.
        """
        self._target = target
        if target.monitors is None:
            target.monitors = {}
        if self._watcher.watching is None:
            self._watcher.watching = {}
        target.monitors[self] = self._watcher.watching[self] = None

    def notify(self, reason: ExitReason) -> None:
        """Send the `Down` to the watcher, once.

        Args:
            reason: The reason why the child has ended.
        """
        self._target = None
        if self._watcher.watching is not None:
            self._watcher.watching.pop(self, None)
        self._watcher.notify(Down(self, self.ref, reason))

    def cancel(self, *, flush: bool = False) -> None:
        """Remove the monitor; with `flush`, also a `Down` that is already queued.

        Args:
            flush: Whether a queued `Down` is removed as well; by default it stays.
        """
        if self._target is not None:
            if self._target.monitors is not None:
                self._target.monitors.pop(self, None)
            if self._watcher.watching is not None:
                self._watcher.watching.pop(self, None)
            self._target = None
        elif flush and self._watcher.mailbox is not None:
            self._watcher.mailbox.discard(self._is_own_notification)

    def _is_own_notification(self, item: object) -> bool:
        return (
            isinstance(item, InfoMessage)
            and isinstance(item.message, Down)
            and item.message.monitor is self
        )


class Down(msgspec.Struct, frozen=True):
    """Message that a monitored child has ended; each monitor sends it once, to `handle_info`."""

    monitor: ExitSource
    """The `Monitor` that `ref.monitor()` returned, or the `TaskHandle` of a failed task."""
    ref: Ref[Any]
    reason: ExitReason


class Exit(msgspec.Struct, frozen=True):
    """Message that a linked child has ended; sent only to actors with `trap_exit`."""

    ref: Ref[Any]
    reason: ExitReason


def ref_of(child: ChildTask) -> Ref[Any]:
    """Return the reference to a child: the same object each time."""
    ref: Ref[Any] | None = child.cached_ref
    if ref is None:
        new: Ref[Any] = Ref(child)
        ref = child.cached_ref = new
    return ref


def exit_message(child: ChildTask, reason: ExitReason) -> Exit:
    """Make the message for an actor that traps the exit of `child`."""
    return Exit(ref_of(child), reason)


class Caller(PendingCall):
    """The caller of a call, with which a handler can answer later.

    A handler that returns `NOREPLY` keeps this object and calls `reply` or `fail` once, from
    anywhere in the same `trio.run`. If the caller has given up meanwhile, the answer is dropped.
    """

    __slots__ = ("bucket", "callee", "deferred", "message", "record", "task")

    def __init__(
        self, message: object, callee: ChildTask, task: Task, record: ChildTask | None
    ) -> None:
        self.message = message
        self.callee = callee
        self.task = task
        self.record = record
        self.progress: CallState = CALL_OPEN
        self.deferred = False
        # The dictionary of the deadline table with this call, while it has a deadline.
        self.bucket: dict[Expirable, float] | None = None

    def __repr__(self) -> str:
        return f"<Caller of {self.message!r}: {self.progress.value}>"

    @property
    def ref(self) -> Ref[Any] | None:
        """The calling actor or other child; None if an ordinary task called."""
        return None if self.record is None else ref_of(self.record)

    @property
    def waiting(self) -> bool:
        """Whether the caller still waits for the answer."""
        return self.progress is CALL_OPEN

    @enable_ki_protection
    def reply(self, value: object) -> None:
        """Answer the call.

        Args:
            value: The answer.

        Raises:
            AlreadyReplied: It was answered before.
        """
        self._answer(Value(value))

    @enable_ki_protection
    def fail(self, error: Exception) -> None:
        """Raise `error` in the caller. The actor itself continues.

        Args:
            error: The exception that the call raises.

        Raises:
            AlreadyReplied: It was answered before.
        """
        self._answer(Error(error))

    @enable_ki_protection
    def _answer(self, answer: Outcome[object]) -> None:
        if self.progress is CALL_OPEN:
            self._close(CALL_ANSWERED)
            reschedule(self.task, answer)
        elif self.progress is CALL_ANSWERED:
            raise AlreadyReplied(self.callee.name, self.message)

    def _close(self, progress: CallState) -> None:
        self.progress = progress
        bucket = self.bucket
        if bucket is not None:
            del bucket[self]
            self.bucket = None
        if self.deferred:
            deferred = self.callee.deferred
            if deferred is not None:
                deferred.discard(self)
        elif self.record is not None:
            self.record.end_waiting(self.callee)

    def defer(self) -> None:
        """Record that the answer comes later: the callee no longer blocks the caller."""
        if self.progress is CALL_OPEN:
            self.deferred = True
            if self.callee.deferred is None:
                self.callee.deferred = set()
            self.callee.deferred.add(self)
            if self.record is not None:
                self.record.end_waiting(self.callee)

    @enable_ki_protection
    def fail_callee_down(self, reason: ExitReason) -> None:
        """Raise `ActorDown` in the caller, if it still waits.

        Args:
            reason: The reason why the callee has ended.
        """
        if self.progress is CALL_OPEN:
            self._close(CALL_ABANDONED)
            reschedule(self.task, Error(actor_down(self.callee.name, reason)))

    @enable_ki_protection
    def abandon(self, raise_cancel: Callable[[], None] | None = None) -> Abort:
        """Give up the call, because its caller was cancelled.

        Args:
            raise_cancel: The function by which trio raises `Cancelled`; it is not needed.
        """
        self._close(CALL_ABANDONED)
        self.callee.forget_call(self)
        return Abort.SUCCEEDED

    @enable_ki_protection
    def expire(self, timeout: float) -> None:
        """Give up the call at its deadline, and raise `CallTimeout` in the caller.

        Args:
            timeout: The seconds that the caller has waited.
        """
        self.abandon()
        reschedule(self.task, Error(CallTimeout(self.callee.name, self.message, timeout)))


@enable_ki_protection
def open_call(message: object, callee: ChildTask) -> Caller:
    """Begin a call of the running task to `callee`.

    Raises:
        CallCycle: The call would wait for its own caller.
    """
    record = current_child()
    if record is not None:
        check_call_cycle(record, callee)
        record.begin_waiting(callee)
    return Caller(message, callee, current_task(), record)


def _require_mailbox(record: ChildTask) -> Mailbox:
    if record.mailbox is None:
        raise NotAnActor(record.name, record.spec.kind)
    return record.mailbox


def _misdirected_error(record: ChildTask, message: object) -> Exception:
    if record.mailbox is None:
        return NotAnActor(record.name, record.spec.kind)
    if isinstance(message, Call):
        return TypeError(f"cast() takes a Cast, but {message!r} is a Call: use ref.call()")
    return TypeError(f"call() takes a Call, not {message!r}: use ref.cast()")
