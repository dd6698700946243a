"""Errors of actors and supervisors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from sessionmgr.errors import SessionmgrError
from sessionmgr.otp.exit_reason import cause_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.otp.exit_reason import ExitReason


class OtpError(SessionmgrError):
    """Base class of errors of actors and supervisors."""


class ActorDown(OtpError):
    """The callee has ended, before the call or before its answer; a crash is the `__cause__`."""

    def __init__(self, who: str, reason: ExitReason) -> None:
        super().__init__(f"{who} is down: {reason}")
        self.who = who
        self.reason = reason


def actor_down(who: str, reason: ExitReason) -> ActorDown:
    """Make the error for a task that waits for an ended child."""
    error = ActorDown(who, reason)
    error.__cause__ = cause_of(reason)
    return error


class CallTimeout(OtpError, trio.TooSlowError):
    """The answer did not come in time. The callee may still work on the request."""

    def __init__(self, who: str, message: object, timeout: float) -> None:
        super().__init__(f"{who} did not answer {message!r} within {timeout:g} s")
        self.who = who
        self.timeout = timeout


class CallCycle(OtpError):
    """The call would wait, through others, for the caller itself."""

    def __init__(self, path: Sequence[str]) -> None:
        super().__init__(f"the call would wait for its own caller: {' -> '.join(path)}")
        self.path = tuple(path)


class MailboxFull(OtpError):
    """A cast found the mailbox full; nothing was changed."""

    def __init__(self, who: str, bound: int) -> None:
        super().__init__(
            f"the mailbox of {who} is full ({bound} messages): "
            "`await ref.send(...)` waits for room, `mailbox = N` on the class makes more"
        )
        self.who = who
        self.bound = bound


class AlreadyReplied(OtpError):
    """One call was answered twice."""

    def __init__(self, who: str, message: object) -> None:
        super().__init__(
            f"{who} answered {message!r} twice: a handler that uses caller.reply() "
            "or caller.fail() returns NOREPLY"
        )
        self.who = who


class NotAnActor(OtpError):
    """A message was sent to a child that has no mailbox."""

    def __init__(self, who: str, kind: str) -> None:
        super().__init__(f"{who} is a {kind}, not an actor: it accepts no messages")
        self.who = who


class NotInActor(OtpError):
    """An operation that only supervised children may use was used outside of one."""

    def __init__(self, what: str, instead: str) -> None:
        super().__init__(f"{what} was called outside a supervised child; {instead}")


class StartFailed(OtpError):
    """A child did not start; `__cause__` is the exception of its start."""

    def __init__(self, supervisor: str, child: str, why: object) -> None:
        super().__init__(f"child {child!r} of supervisor {supervisor!r} did not start: {why}")
        self.supervisor = supervisor
        self.child = child


class RestartIntensityExceeded(OtpError):
    """A supervisor gave up: its children ended more often than it may restart them."""

    def __init__(
        self,
        supervisor: str,
        child: str,
        exits: Sequence[ExitReason],
        max_restarts: int,
        max_seconds: float,
    ) -> None:
        super().__init__(
            f"supervisor {supervisor!r} gave up on child {child!r}: more than "
            f"{max_restarts} restart{'s' * (max_restarts != 1)} in {max_seconds:g} s; "
            f"last exits: {', '.join(map(str, exits))}"
        )
        self.supervisor = supervisor
        self.child = child
        self.exits = tuple(exits)


class DuplicateChild(OtpError, ValueError):
    """Two children of one supervisor were given the same id."""

    def __init__(self, supervisor: str, child: str) -> None:
        super().__init__(f"supervisor {supervisor!r} already has a child {child!r}")
        self.supervisor = supervisor
        self.child = child


class UnknownChild(OtpError, LookupError):
    """The supervisor has no such child."""

    def __init__(self, supervisor: str, child: object) -> None:
        super().__init__(f"supervisor {supervisor!r} has no child {child!r}")
        self.supervisor = supervisor
        self.child = child


class ChildRunning(OtpError):
    """The child is running or starting, and the operation needs a stopped one."""

    def __init__(self, supervisor: str, child: str, state: str) -> None:
        super().__init__(
            f"child {child!r} of supervisor {supervisor!r} is {state}: call terminate_child() first"
        )
        self.supervisor = supervisor
        self.child = child


class MaxChildren(OtpError):
    """The supervisor already has its maximum number of children."""

    def __init__(self, supervisor: str, limit: int) -> None:
        super().__init__(f"supervisor {supervisor!r} already has {limit} children, the maximum")
        self.supervisor = supervisor
        self.limit = limit


class SupervisorNotRunning(OtpError):
    """A supervisor was used before its block began or after it ended."""

    def __init__(self, supervisor: str, state: str = "not running") -> None:
        super().__init__(
            f"supervisor {supervisor!r} is {state}: use it inside its "
            "`async with` block, or while its parent runs it"
        )
        self.supervisor = supervisor


class SupervisorStopping(SupervisorNotRunning):
    """A supervisor received a request while it stops."""

    def __init__(self, supervisor: str) -> None:
        super().__init__(supervisor, "stopping")


class AlreadyRegistered(OtpError):
    """The name is taken, in a registry of unique names."""

    def __init__(self, key: object, owner: str) -> None:
        super().__init__(f"the name {key!r} is already taken by {owner}")
        self.key = key


class TaskCrashed(OtpError):
    """A task ended with an exception, which is the `__cause__`."""

    def __init__(self, who: str, reason: ExitReason) -> None:
        super().__init__(f"task {who} ended without a result: {reason}")
        self.who = who
        self.reason = reason


class TaskCancelled(OtpError):
    """A task was cancelled before it had a result."""

    def __init__(self, who: str) -> None:
        super().__init__(f"task {who} was cancelled")
        self.who = who
