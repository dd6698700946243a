"""Codec of events: it decodes any input, and loses nothing.

The stored bytes are the record, and an event is a view of them. The fast decoder refuses whatever
it does not know exactly; only then the slow path removes the unknown fields and carries them along.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias, get_args

import msgspec
from msgspec import UNSET

from sessionmgr.model.event import diagnostic, message, run, tool, usage
from sessionmgr.model.event.envelope import Event, UnknownEvent
from sessionmgr.model.json_codec import encode_json, parse_json
from sessionmgr.model.value import with_unknown, without_unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.model.json_codec import Json

KnownEvent: TypeAlias = (
    run.SessionCreated
    | run.SessionClosed
    | run.SessionReopened
    | run.RunStarted
    | message.MessageSent
    | message.MessageStreamed
    | message.MessageReceived
    | message.ReasoningStreamed
    | message.ReasoningReceived
    | tool.ToolCallStarted
    | tool.ToolCallUpdated
    | tool.ToolCallCompleted
    | tool.ToolCallFailed
    | tool.ToolApprovalRequested
    | tool.ToolApprovalGranted
    | tool.ToolApprovalDenied
    | message.PlanUpdated
    | message.ImageReceived
    | usage.TokenUsageUpdated
    | run.ProviderSessionUpdated
    | usage.CompactionStarted
    | usage.CompactionCompleted
    | usage.CompactionFailed
    | usage.RateLimitUpdated
    | usage.RetryScheduled
    | diagnostic.StallSuspected
    | diagnostic.PolicyViolation
    | run.TurnCompleted
    | usage.SessionStatsUpdated
    | diagnostic.ErrorOccurred
    | run.ProcessExited
    | diagnostic.OutputReceived
    | diagnostic.RawReceived
    | diagnostic.EventsPruned
    | run.RunCompleted
    | run.RunFailed
    | run.RunCancelled
    | run.RunTimedOut
    | run.RunRateLimited
    | run.RunPaused
)
AnyEvent: TypeAlias = KnownEvent | UnknownEvent

EVENT_TYPES: Final[dict[str, type[KnownEvent]]] = {
    str(each.__struct_config__.tag): each for each in get_args(KnownEvent)
}

_encoder: Final = msgspec.json.Encoder()


@cache
def _decoder() -> msgspec.json.Decoder[KnownEvent]:
    """Make the fast decoder on first use: it takes as long as many imports."""
    return msgspec.json.Decoder(KnownEvent)


def decode_event(body: bytes) -> AnyEvent:
    """Decode an event; one that cannot be decoded becomes an `UnknownEvent`."""
    try:
        event: KnownEvent = _decoder().decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _decode_leniently(body)
    return event


def encode_event(event: Event | UnknownEvent) -> bytes:
    """Encode an event, including the unknown fields that were decoded with it."""
    if isinstance(event, UnknownEvent):
        return event.body
    if event.source is not UNSET:
        return _encode_with_source(event, event.source)
    try:
        return _encoder.encode(event)
    except (UnicodeEncodeError, OverflowError):
        return encode_json(event)


def encode_events(events: Sequence[Event]) -> tuple[list[bytes], bool]:
    """Encode events, and return whether decoding the bytes gives equal events."""
    if not [event for event in events if event.source is not UNSET]:
        try:
            return list(map(_encoder.encode, events)), True
        except (UnicodeEncodeError, OverflowError):
            pass
    return [encode_event(event) for event in events], False


def _decode_leniently(body: bytes) -> AnyEvent:
    found = parse_json(body)
    if not isinstance(found, dict):
        return UnknownEvent(tag="", body=body)
    tag = found.get("type")
    if not isinstance(tag, str):
        return _unknown("", found, body)
    if tag in EVENT_TYPES:
        return _decode_newer(found, EVENT_TYPES[tag], body)
    return _unknown(tag, found, body)


def _decode_newer(found: dict[str, Json], of: type[KnownEvent], body: bytes) -> AnyEvent:
    try:
        known = without_unknown(found, of)
        event: KnownEvent = msgspec.convert(known, of)
    except (msgspec.ValidationError, RecursionError):
        return _unknown(str(found["type"]), found, body)  # a known tag with another meaning
    if known == found:
        return event
    return msgspec.structs.replace(event, source=found)


def _encode_with_source(event: Event, source: dict[str, Json]) -> bytes:
    typed = msgspec.json.decode(encode_json(msgspec.structs.replace(event, source=UNSET)))
    return encode_json(with_unknown(typed, source, type(event)))


class _EventEnvelope(msgspec.Struct, frozen=True):
    seq: int = 0
    at: str = ""
    session_id: str = ""
    run_id: str | None = None
    provider: str = ""


def _unknown(tag: str, found: dict[str, Json], body: bytes) -> UnknownEvent:
    fields: dict[str, object] = {}
    for name in _EventEnvelope.__struct_fields__:
        try:  # each field by itself, so that one of a changed type does not hide the others
            envelope = msgspec.convert({name: found[name]} if name in found else {}, _EventEnvelope)
        except msgspec.ValidationError:
            continue
        fields[name] = getattr(envelope, name)
    return msgspec.structs.replace(UnknownEvent(tag=tag, body=body), **fields)
