"""Validation of the events that an adapter emits: an invalid event affects only its run.

An impossible figure, such as a negative number of tokens, is removed with a warning in the record.
Any other invalid value is a mistake of the adapter and crashes its run: each event is decoded from
its encoded form, so that a value of a wrong type is found here and not by a reader of the record.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, TypeVar, cast

import msgspec
from msgspec.structs import asdict, replace

from sessionmgr.model import (
    ErrorOccurred,
    Event,
    Failure,
    FailureKind,
    KnownEvent,
    Provenance,
    RunPaused,
    SessionClosed,
    SessionCreated,
    TokenUsageUpdated,
    Usage,
    encode_event,
    encode_json,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

S = TypeVar("S", bound=msgspec.Struct)

MOST_TOKENS: Final = 10**12
MOST_USD: Final = 10.0**6
LARGEST_BITS: Final = 63
MOST_SHOWN: Final = 80
"""Maximum number of characters of a wrong value in a message."""
_MANAGER_EVENTS: Final = (SessionCreated, SessionClosed, RunPaused)
_VALIDATED_TYPES: Final = frozenset({TokenUsageUpdated, *_MANAGER_EVENTS})
# Values that are too deep, too large or half a character are left to the encoder.
_ENCODING_ERRORS: Final = (TypeError, ValueError, OverflowError, RecursionError)

_encode: Final = msgspec.json.Encoder().encode


@cache
def _decode() -> Callable[[bytes], list[KnownEvent]]:
    """Create the decoder on first use: that takes as long as many imports."""
    return msgspec.json.Decoder(list[KnownEvent]).decode


@cache
def _decode_one() -> Callable[[bytes], KnownEvent]:
    return msgspec.json.Decoder(KnownEvent).decode


def validate_events(events: tuple[Event, ...]) -> tuple[tuple[Event, ...], int]:
    """Return the events in storable form, and their size in bytes.

    Raises:
        TypeError: An adapter may not emit such an event.
    """
    if not _VALIDATED_TYPES.isdisjoint(map(type, events)):
        events = tuple(each for event in events for each in _validated_event(event))
    try:
        body = _encode(events)
        found = tuple(_decode()(body))
    except (*_ENCODING_ERRORS, msgspec.MsgspecError):
        return _validate_each(events)
    return (found, len(body)) if found == events else _validate_each(events)


def validate_blobs(blobs: Sequence[bytes]) -> Sequence[bytes]:
    """Return the contents of images.

    Raises:
        TypeError: One of them is not bytes.
    """
    for blob in blobs:
        if not isinstance(blob, bytes):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"a blob must be bytes, not {_shown(blob)}")
    return blobs


def round_trip(value: S) -> S:
    """Return a value as decoded from its encoded form.

    Raises:
        TypeError: It has a wrong type; the error names the field.
    """
    decode = msgspec.json.Decoder(type(value)).decode
    return _round_trip(value, type(value).__name__, encode_json, decode)[0]


def _validate_each(events: tuple[Event, ...]) -> tuple[tuple[Event, ...], int]:
    found: list[Event] = []
    size = 0
    for event in events:
        _require_event(event)
        read, took = _round_trip(event, event.type, encode_event, _decode_one())
        found.append(read)
        size += took
    return tuple(found), size


def _require_event(event: object) -> None:
    if not isinstance(event, Event):
        raise TypeError(f"an adapter must report events, not {_shown(event)}")


def _round_trip(
    value: S, name: str, encode: Callable[[S], bytes], decode: Callable[[bytes], object]
) -> tuple[S, int]:
    try:
        body = encode(value)
    except TypeError as error:
        raise TypeError(f"{name} cannot be written: {error}") from None
    try:
        found = cast("S", decode(body))
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        field = path.rstrip("`")
        raise TypeError(f"{name}{field} is {_shown(_value_at(value, field))}: {what}") from None
    except RecursionError:
        return value, len(body)  # JSON that is nested too deep for the decoder
    if found != value:
        for field in value.__struct_fields__:
            _require_json(f"{name}.{field}", getattr(value, field), getattr(found, field))
    return found, len(body)


def _require_json(name: str, given: object, decoded: object) -> None:
    """Refuse values that the encoder converted: bytes and dates to text, a set to a list."""
    match decoded:
        case msgspec.Struct() if isinstance(given, type(decoded)):
            for field in decoded.__struct_fields__:
                _require_json(f"{name}.{field}", getattr(given, field), getattr(decoded, field))
        case dict() if isinstance(given, dict):
            ours, theirs = cast("dict[str, object]", decoded), cast("dict[str, object]", given)
            for key in ours.keys() & theirs.keys():
                _require_json(f"{name}[{key!r}]", theirs[key], ours[key])
        case list() | tuple() if isinstance(given, list | tuple):
            pairs = zip(cast("list[object]", given), cast("list[object]", decoded), strict=True)
            for number, (their, our) in enumerate(pairs):
                _require_json(f"{name}[{number}]", their, our)
        case str() if not (isinstance(given, str) or _is_too_large(given)):
            raise TypeError(f"{name} is {_shown(given)}: Expected `str`")
        case msgspec.Struct():
            raise TypeError(f"{name} is {_shown(given)}: Expected `{type(decoded).__name__}`")
        case dict() | list() | tuple():
            raise TypeError(f"{name} is {_shown(given)}: Expected JSON")
        case _:
            pass


def _is_too_large(given: object) -> bool:
    """Return whether it is a number that is encoded as text because few decoders support it."""
    return isinstance(given, int) and given.bit_length() > LARGEST_BITS


def _value_at(value: object, path: str) -> object:
    """Return the value at a path of fields, or the last one on the way to it."""
    for name in path.split(".")[1:]:
        value = getattr(value, name.partition("[")[0], value)
    return value


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


def _validated_event(event: Event) -> tuple[Event, ...]:
    match event:
        case TokenUsageUpdated():
            return _validate_figures(event)
        case SessionCreated() | SessionClosed() | RunPaused():
            raise TypeError(f"{event.type} is not an adapter's to tell")
        case _:
            return (event,)


def _validate_figures(event: TokenUsageUpdated) -> tuple[Event, ...]:
    usage, total, cost = (
        _validate_tokens(event.usage),
        _validate_tokens(event.total),
        _validate_cost(event.cost),
    )
    if (usage, total, cost) == (event.usage, event.total, event.cost):
        return (event,)
    provenance = event.provenance if cost is not None else Provenance.UNKNOWN
    failure = Failure(
        kind=FailureKind.PROTOCOL_ERROR,
        message=f"these figures cannot be, and are left out: {event.usage}, {event.cost} usd",
    )
    sound = replace(event, usage=usage, total=total, cost=cost, provenance=provenance)
    return (ErrorOccurred(failure=failure, severity="warning"), sound)


def _validate_tokens(usage: Usage) -> Usage:
    if not isinstance(usage, Usage):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"token_usage_updated: {_shown(usage)} is not a Usage")
    return Usage(**{name: count if _can_be(count) else 0 for name, count in asdict(usage).items()})


def _can_be(count: object) -> bool:
    return isinstance(count, int) and 0 <= count <= MOST_TOKENS


def _validate_cost(cost: float | None) -> float | None:
    if not isinstance(cost, int | float | None):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"token_usage_updated: a cost must be a number, not {_shown(cost)}")
    return cost if cost is not None and 0 <= cost <= MOST_USD else None
