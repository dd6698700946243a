"""Messages that actors send, and the return values of their handlers."""

from __future__ import annotations

import enum
from typing import Final, Generic, TypeVar, dataclass_transform

import msgspec

from sessionmgr.otp.exit_reason import NORMAL, ExitReason, PlainReason, as_reason

R = TypeVar("R", covariant=True)


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class MessageMeta(msgspec.StructMeta):
    """Tells type checkers that a subclass of a message is frozen without saying so."""


class Call(msgspec.Struct, Generic[R], metaclass=MessageMeta, frozen=True):
    """A question. `R` is the type of the answer: `await ref.call(Get("a"))` is an `R`.

    The type is a promise of the message, for its callers; `handle_call` is not checked
    against it.
    """


class Cast(msgspec.Struct, metaclass=MessageMeta, frozen=True):
    """A statement: nobody waits for an answer."""


class Continue(msgspec.Struct, frozen=True):
    """Returned by `init` or a handler: run `handle_continue(arg)` before any other message."""

    arg: object = None


class NoReply(enum.Enum):
    """The type of `NOREPLY`."""

    NOREPLY = "NOREPLY"


NOREPLY: Final = NoReply.NOREPLY
"""Returned by `handle_call`: the answer comes later, by `caller.reply()`."""


class Stop(Exception):
    """Raised in a callback, ends the actor with `reason`, which is no crash.

    In `handle_call`, `reply` answers the caller first; without one the caller sees
    `ActorDown`.
    """

    def __init__(
        self, reason: ExitReason | PlainReason = NORMAL, *, reply: object = NOREPLY
    ) -> None:
        self.reason = as_reason(reason)
        super().__init__(str(self.reason))
        self.reply = reply
