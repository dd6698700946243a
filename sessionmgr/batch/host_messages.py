"""What a batch and a host in a child process say to each other: JSON, one message a line."""

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
    """What all messages are; `type` tells them apart."""


class OpenMessage(HostMessage, frozen=True, kw_only=True):
    """To the child, first of all: where the store is, and which adapters beside the installed."""

    store: str
    adapters: dict[str, str]
    asks: bool
    """Whether somebody answers questions."""


class SubmitMessage(HostMessage, frozen=True, kw_only=True):
    """To the child: take up an attempt."""

    work: AttemptSpec


class CancelMessage(HostMessage, frozen=True, kw_only=True):
    """To the child: have an attempt end."""

    job: str
    attempt: int
    detail: str | None


class RenewMessage(HostMessage, frozen=True, kw_only=True):
    """To the child: go on for so long."""

    seconds: float


class AnswerMessage(HostMessage, frozen=True, kw_only=True):
    """To the child: the answer to a question; one of the two."""

    question: int
    allow: Allow | None = None
    deny: Deny | None = None


class ReadyMessage(HostMessage, frozen=True, kw_only=True):
    """From the child: its manager is there."""


class BrokenMessage(HostMessage, frozen=True, kw_only=True):
    """From the child: its manager does not come up."""

    why: str


class ReportedMessage(HostMessage, frozen=True, kw_only=True):
    """From the child: how an attempt has ended."""

    ended: AttemptResult


class ActiveMessage(HostMessage, frozen=True, kw_only=True):
    """From the child: what an attempt is at."""

    job: str
    attempt: int
    activity: AttemptActivity


class AliveMessage(HostMessage, frozen=True, kw_only=True):
    """From the child: nothing, but it lives."""


class AskMessage(HostMessage, frozen=True, kw_only=True):
    """From the child: it wants to know whether an agent may do this."""

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
    """Write a message as a line."""
    return _encoder.encode(message) + b"\n"
