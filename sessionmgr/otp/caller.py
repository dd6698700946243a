"""A call under way: what a handler sees of it, and the rule that no call waits for itself."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from outcome import Error, Outcome, Value
from trio.lowlevel import Abort, Task, current_task, enable_ki_protection, reschedule

from sessionmgr.errors import ActorDown, AlreadyReplied, CallCycle, CallTimeout
from sessionmgr.otp.current import current_life
from sessionmgr.otp.exit import ExitReason, cause_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessionmgr.otp.actor import Actor
    from sessionmgr.otp.life import Life
    from sessionmgr.otp.ref import Ref


class Progress(enum.Enum):
    """How far a call is."""

    OPEN = "open"
    """The caller waits."""
    ANSWERED = "answered"
    """The caller has an answer, or an error."""
    GONE = "gone"
    """The caller was cancelled or its time ran out; whatever comes now is dropped."""


class Caller:
    """Who asked: the way to answer later.

    A handler that returns `NOREPLY` keeps this object, and calls `reply` or `fail` once,
    from anywhere in the same `trio.run`. If the caller has gone meanwhile, the answer is
    dropped and harms nobody.
    """

    __slots__ = ("bucket", "callee", "deferred", "life", "message", "progress", "task")

    def __init__(self, message: object, callee: Life, task: Task, life: Life | None) -> None:
        self.message = message
        self.callee = callee
        self.task = task
        self.life = life
        self.progress = Progress.OPEN
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
        return self.progress is Progress.OPEN

    def reply(self, value: object) -> None:
        """Answer the call.

        Raises:
            AlreadyReplied: it was answered before.
        """
        self._settle(Value(value))

    def fail(self, error: Exception) -> None:
        """Let the call raise `error` where it was made. The actor itself lives on.

        Raises:
            AlreadyReplied: it was answered before.
        """
        self._settle(Error(error))

    @enable_ki_protection
    def _settle(self, answer: Outcome[object]) -> None:
        if self.progress is Progress.OPEN:
            self._leave(Progress.ANSWERED)
            reschedule(self.task, answer)
        elif self.progress is Progress.ANSWERED:
            raise AlreadyReplied(self.callee.name, self.message)

    def _leave(self, progress: Progress) -> None:
        self.progress = progress
        if self.bucket is not None:
            del self.bucket[self]
            self.bucket = None
        if self.deferred and self.callee.deferred is not None:
            self.callee.deferred.discard(self)
        if self.life is not None and self.life.waits_for is not None:
            self.life.waits_for.remove(self)

    def refuse(self, reason: ExitReason) -> None:
        """Tell the caller, if it still waits, that the callee has ended."""
        if self.progress is Progress.OPEN:
            self.fail(down(self.callee, reason))

    @enable_ki_protection
    def abandon(self, raise_cancel: Callable[[], None] | None = None) -> Abort:
        """Forget the call, because its caller was cancelled."""
        self._leave(Progress.GONE)
        self.callee.forget(self)
        return Abort.SUCCEEDED

    def expire(self, timeout: float) -> None:
        """Forget the call, because its time has run out, and tell its caller."""
        self.abandon()
        reschedule(self.task, Error(CallTimeout(self.callee.name, self.message, timeout)))


def open_call(message: object, callee: Life) -> Caller:
    """Begin a call of the running task to `callee`.

    Raises:
        CallCycle: it would wait for itself.
    """
    life = current_life()
    caller = Caller(message, callee, current_task(), life)
    if life is not None:
        _refuse_cycle(life, callee)
        if life.waits_for is None:
            life.waits_for = []
        life.waits_for.append(caller)
    return caller


def down(callee: Life, reason: ExitReason) -> ActorDown:
    """Make the error for those who wait for somebody that has ended."""
    error = ActorDown(callee.name, reason)
    error.__cause__ = cause_of(reason)
    return error


def _refuse_cycle(caller: Life, callee: Life) -> None:
    if callee is not caller and not callee.waits_for and callee.waits_for_child is None:
        return
    # Depth first; a child seldom waits for more than one other.
    trail: dict[Life, Life | None] = {callee: None}
    pending = [callee]
    while pending:
        life = pending.pop()
        if life is caller:
            path = [caller.name]
            step: Life | None = life
            while step is not None:
                path.append(step.name)
                step = trail[step]
            raise CallCycle([path[0], *reversed(path[1:])])
        for other in _awaited(life):
            if other not in trail:
                trail[other] = life
                pending.append(other)


def _awaited(life: Life) -> list[Life]:
    # A call that its callee put off may be answered by anyone, so it proves no cycle.
    others = [call.callee for call in life.waits_for or () if not call.deferred]
    if life.waits_for_child is not None:
        others.append(life.waits_for_child)
    return others
