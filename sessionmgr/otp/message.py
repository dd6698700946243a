"""Messages that actors send, and the return values of their handlers."""

from __future__ import annotations

import enum
from typing import Final, Generic, TypeVar, dataclass_transform

import msgspec

from sessionmgr.otp.exit_reason import NORMAL, ExitReason, PlainReason, as_reason

R = TypeVar("R", covariant=True)


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class MessageMeta(msgspec.StructMeta):
    """Metaclass that tells type checkers that message classes are frozen."""


class Call(msgspec.Struct, Generic[R], metaclass=MessageMeta, frozen=True):
    """Base class of requests. `R` is the type of the answer: `await ref.call(Get("a"))` is an `R`.

    The type is a promise to the callers; `handle_call` is not checked against it.
    """


class Cast(msgspec.Struct, metaclass=MessageMeta, frozen=True):
    """Base class of one-way messages: no answer is expected."""


class Continue(msgspec.Struct, frozen=True):
    """Return value of `init` or a handler: run `handle_continue(arg)` before any other message."""

    arg: object = None


class NoReply(enum.Enum):
    """The type of `NOREPLY`."""

    NOREPLY = "NOREPLY"


NOREPLY: Final = NoReply.NOREPLY
"""Return value of `handle_call`: the answer comes later, by `caller.reply()`."""


class Stop(Exception):
    """Exception for callbacks: ends the actor with `reason`, which is not a crash.

    In `handle_call`, `reply` answers the caller first; without one the caller sees
    `ActorDown`.
    """

    def __init__(
        self, reason: ExitReason | PlainReason = NORMAL, *, reply: object = NOREPLY
    ) -> None:
        self.reason = as_reason(reason)
        super().__init__(str(self.reason))
        self.reply = reply
