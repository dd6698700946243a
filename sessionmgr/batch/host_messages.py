"""Messages between a batch and a host in a child process: JSON, one message per line."""

from __future__ import annotations

import re
from typing import Final, TypeAlias

import msgspec

from sessionmgr.adapter import Allow, ApprovalRequest, Deny
from sessionmgr.batch.host import AttemptActivity, AttemptResult, AttemptSpec


class HostMessage(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag=lambda name: re.sub(r"(?<!^)(?=[A-Z])", "_", name.removesuffix("Message")).lower(),
):
    """Base class of all messages, tagged by `type`."""


class OpenMessage(HostMessage, frozen=True, kw_only=True):
    """To the child, as the first message: the store, and adapters beside the installed ones."""

    store: str
    adapters: dict[str, str]
    agents: str | None = None
    """The registry file of agents."""
    asks: bool
    """Whether the parent answers approval requests."""


class SubmitMessage(HostMessage, frozen=True, kw_only=True):
    """To the child: start an attempt."""

    work: AttemptSpec


class CancelMessage(HostMessage, frozen=True, kw_only=True):
    """To the child: cancel an attempt."""

    job: str
    attempt: int
    detail: str | None


class RenewMessage(HostMessage, frozen=True, kw_only=True):
    """To the child: renew the lease."""

    seconds: float


class AnswerMessage(HostMessage, frozen=True, kw_only=True):
    """To the child: the answer to an approval request; exactly one of the two fields is set."""

    question: int
    allow: Allow | None = None
    deny: Deny | None = None


class ReadyMessage(HostMessage, frozen=True, kw_only=True):
    """From the child: its manager is open."""


class BrokenMessage(HostMessage, frozen=True, kw_only=True):
    """From the child: its manager does not start."""

    why: str


class ReportedMessage(HostMessage, frozen=True, kw_only=True):
    """From the child: the end of an attempt."""

    ended: AttemptResult


class ActiveMessage(HostMessage, frozen=True, kw_only=True):
    """From the child: the current activity of an attempt."""

    job: str
    attempt: int
    activity: AttemptActivity


class AliveMessage(HostMessage, frozen=True, kw_only=True):
    """From the child: a sign of life, without other content."""


class AskMessage(HostMessage, frozen=True, kw_only=True):
    """From the child: an agent's approval request."""

    question: int
    request: ApprovalRequest


ToChild: TypeAlias = OpenMessage | SubmitMessage | CancelMessage | RenewMessage | AnswerMessage
FromChild: TypeAlias = (
    ReadyMessage | BrokenMessage | ReportedMessage | ActiveMessage | AliveMessage | AskMessage
)

to_child: Final = msgspec.json.Decoder(ToChild)
from_child: Final = msgspec.json.Decoder(FromChild)
_encoder: Final = msgspec.json.Encoder()


def encode_message(message: HostMessage) -> bytes:
    """Encode a message as a line."""
    return _encoder.encode(message) + b"\n"
