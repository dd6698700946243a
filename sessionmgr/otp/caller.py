"""A call under way: what a handler sees of it, and the rule that no call waits for itself."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final

from outcome import Error, Outcome, Value
from trio.lowlevel import Abort, Task, current_task, enable_ki_protection, reschedule

from sessionmgr.otp.context import current_child
from sessionmgr.otp.errors import ActorDown, AlreadyReplied, CallCycle, CallTimeout
from sessionmgr.otp.exit_reason import ExitReason, cause_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessionmgr.otp.actor import Actor
    from sessionmgr.otp.child_task import ChildTask
    from sessionmgr.otp.ref import Ref


class CallState(enum.Enum):
    """How far a call is."""

    OPEN = "open"
    """The caller waits."""
    ANSWERED = "answered"
    """The callee has answered."""
    GONE = "gone"
    """The caller waits no more: cancelled, out of time, or told that the callee has ended."""


# Read for every message; the way through the enum would cost as much as the rest.
CALL_OPEN: Final = CallState.OPEN
CALL_ANSWERED: Final = CallState.ANSWERED
CALL_ABANDONED: Final = CallState.GONE


class Caller:
    """Who asked: the way to answer later.

    A handler that returns `NOREPLY` keeps this object, and calls `reply` or `fail` once,
    from anywhere in the same `trio.run`. If the caller has gone meanwhile, the answer is
    dropped and harms nobody.
    """

    __slots__ = ("bucket", "callee", "deferred", "life", "message", "progress", "task")

    def __init__(
        self, message: object, callee: ChildTask, task: Task, life: ChildTask | None
    ) -> None:
        self.message = message
        self.callee = callee
        self.task = task
        self.life = life
        self.progress = CALL_OPEN
        self.deferred = False
        # Where the deadline table keeps this call, while it has a timeout.
        self.bucket: dict[Caller, float] | None = None

    def __repr__(self) -> str:
        return f"<Caller of {self.message!r}: {self.progress.value}>"

    @property
    def ref(self) -> Ref[Actor] | None:
        """The actor (or other child) that asked; None when an ordinary task did."""
        return None if self.life is None else self.life.ref

    @property
    def waiting(self) -> bool:
        """Whether an answer would still reach somebody."""
        return self.progress is CALL_OPEN

    @enable_ki_protection
    def reply(self, value: object) -> None:
        """Answer the call.

        Args:
            value: The answer.

        Raises:
            AlreadyReplied: it was answered before.
        """
        self._answer(Value(value))

    @enable_ki_protection
    def fail(self, error: Exception) -> None:
        """Let the call raise `error` where it was made. The actor itself lives on.

        Args:
            error: The exception that the call raises.

        Raises:
            AlreadyReplied: it was answered before.
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
        elif self.life is not None:
            self.life.end_waiting(self.callee)

    def defer(self) -> None:
        """Note that the answer comes later, from whomever: so nobody is known to block it."""
        if self.progress is CALL_OPEN:
            self.deferred = True
            if self.callee.deferred is None:
                self.callee.deferred = set()
            self.callee.deferred.add(self)
            if self.life is not None:
                self.life.end_waiting(self.callee)

    @enable_ki_protection
    def fail_callee_down(self, reason: ExitReason) -> None:
        """Tell the caller, if it still waits, that the callee has ended.

        Args:
            reason: The reason why the callee has ended.
        """
        if self.progress is CALL_OPEN:
            self._close(CALL_ABANDONED)
            reschedule(self.task, Error(actor_down(self.callee, reason)))

    @enable_ki_protection
    def abandon(self, raise_cancel: Callable[[], None] | None = None) -> Abort:
        """Forget the call, because its caller was cancelled.

        Args:
            raise_cancel: The function by which trio raises `Cancelled`; it is not needed.
        """
        self._close(CALL_ABANDONED)
        self.callee.forget_call(self)
        return Abort.SUCCEEDED

    @enable_ki_protection
    def expire(self, timeout: float) -> None:
        """Forget the call, because its time has run out, and tell its caller.

        Args:
            timeout: The seconds that the caller has waited.
        """
        self.abandon()
        reschedule(self.task, Error(CallTimeout(self.callee.name, self.message, timeout)))


@enable_ki_protection
def open_call(message: object, callee: ChildTask) -> Caller:
    """Begin a call of the running task to `callee`.

    Raises:
        CallCycle: it would wait for itself.
    """
    life = current_child()
    if life is not None:
        check_call_cycle(life, callee)
        life.begin_waiting(callee)
    return Caller(message, callee, current_task(), life)


def actor_down(callee: ChildTask, reason: ExitReason) -> ActorDown:
    """Make the error for those who wait for somebody that has ended."""
    error = ActorDown(callee.name, reason)
    error.__cause__ = cause_of(reason)
    return error


def check_call_cycle(caller: ChildTask, callee: ChildTask) -> None:
    """See to it that nobody waits for somebody who, through others, waits for them.

    Raises:
        CallCycle: with the names of all who would wait for each other.
    """
    # Depth first; a child seldom waits for more than one other.
    trail: dict[ChildTask, ChildTask | None] = {callee: None}
    pending = [callee]
    while pending:
        life = pending.pop()
        if life is caller:
            path: list[str] = []
            step: ChildTask | None = life
            while step is not None:
                path.append(step.name)
                step = trail[step]
            raise CallCycle([caller.name, *reversed(path)])
        for other in life.waits_for:
            if other not in trail:
                trail[other] = life
                pending.append(other)
