"""What an adapter tells, looked at before it is taken in: one odd event must cost nobody else.

A figure that no provider can have meant is taken for one that nobody has said, and that is told.
Whatever else cannot be is a mistake of the adapter's, and crashes the run that it is made in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import asdict, replace

from sessionmgr.model import (
    ErrorOccurred,
    Failure,
    FailureKind,
    Provenance,
    RunPaused,
    SessionClosed,
    SessionCreated,
    SessionReopened,
    TokenUsageUpdated,
    ToolCallCompleted,
    ToolCallFailed,
    ToolCallStarted,
    ToolCallUpdated,
    Usage,
)

if TYPE_CHECKING:
    from sessionmgr.model import Event

MOST_TOKENS: Final = 10**12
MOST_USD: Final = 10.0**6
_CALLS: Final = (ToolCallStarted, ToolCallUpdated, ToolCallCompleted, ToolCallFailed)
_OURS: Final = (SessionCreated, SessionClosed, SessionReopened, RunPaused)
_LOOKED_AT: Final = frozenset({TokenUsageUpdated, *_CALLS, *_OURS})


def checked(events: tuple[Event, ...]) -> tuple[Event, ...]:
    """Return the events as they can be kept.

    Raises:
        TypeError: No adapter may tell this, or not so.
    """
    if _LOOKED_AT.isdisjoint(map(type, events)):
        return events
    return tuple(each for event in events for each in _checked(event))


def _checked(event: Event) -> tuple[Event, ...]:
    match event:
        case TokenUsageUpdated():
            return _of_figures(event)
        case ToolCallStarted() | ToolCallUpdated() | ToolCallCompleted() | ToolCallFailed():
            _require_text(event.type, event.tool_call_id)
        case SessionCreated() | SessionClosed() | SessionReopened() | RunPaused():
            raise TypeError(f"{event.type} is not an adapter's to tell")
        case _:
            pass
    return (event,)


def _require_text(what: str, name: object) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{what}: the id of a call is a text, and not {name!r}")


def _of_figures(event: TokenUsageUpdated) -> tuple[Event, ...]:
    usage, total, cost = _tokens(event.usage), _tokens(event.total), _money(event.cost)
    if (usage, total, cost) == (event.usage, event.total, event.cost):
        return (event,)
    provenance = event.provenance if cost is not None else Provenance.UNKNOWN
    failure = Failure(
        kind=FailureKind.PROTOCOL_ERROR,
        message=f"these figures cannot be, and are left out: {event.usage}, {event.cost} usd",
    )
    sound = replace(event, usage=usage, total=total, cost=cost, provenance=provenance)
    return (ErrorOccurred(failure=failure, severity="warning"), sound)


def _tokens(usage: Usage) -> Usage:
    return Usage(**{name: count if _can_be(count) else 0 for name, count in asdict(usage).items()})


def _can_be(count: object) -> bool:
    return isinstance(count, int) and 0 <= count <= MOST_TOKENS


def _money(cost: float | None) -> float | None:
    return cost if cost is not None and 0 <= cost <= MOST_USD else None
