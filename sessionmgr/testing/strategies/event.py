"""Strategies for events of every type, for logs, and for events of unknown types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar, cast

from hypothesis import strategies as st

from sessionmgr.model import EVENT_TYPES, AnyEvent, Event, KnownEvent, UnknownEvent
from sessionmgr.testing.strategies.struct import structs

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

E = TypeVar("E", bound=Event)

RUN: Final = "run_1"
OTHER_RUN: Final = "run_2"
SESSION: Final = "ses_1"
MOMENT: Final = "2026-01-02T03:04:05.678Z"
LAST: Final = 50

_OPTIONAL: Final = ("source", "parent_tool_call_id", "synthetic", "raw")
# Few ids, so that starts often have their ends, and questions their answers.
_IDS: Final = st.sampled_from(["a", "b", "c"])
_OF_FEW: Final = ("tool_call_id", "approval_id", "message_id")
_RUNS: Final = st.sampled_from([RUN, RUN, RUN, RUN, OTHER_RUN, None])


def event_of(of: type[E]) -> SearchStrategy[E]:
    """Return a strategy for events of one type, of one session and mostly of one run.

    The ids of calls, questions and messages are drawn from a small set.
    """
    few: dict[str, SearchStrategy[object]] = {
        name: _IDS for name in _OF_FEW if name in of.__struct_fields__
    }
    envelope: dict[str, SearchStrategy[object]] = {
        "at": st.just(MOMENT),
        "session_id": st.just(SESSION),
        "provider": st.just("echo"),
        "run_id": _RUNS,
        "seq": st.integers(0, LAST),
    }
    return structs(of, without=_OPTIONAL, **(envelope | few))


def events() -> SearchStrategy[KnownEvent]:
    """Return a strategy for events of all known types."""
    known = [event_of(cast("type[Event]", of)) for of in EVENT_TYPES.values()]
    return cast("SearchStrategy[KnownEvent]", st.one_of(known))


def unknown_events() -> SearchStrategy[UnknownEvent]:
    """Return a strategy for events of types that this version does not know."""
    return st.builds(
        UnknownEvent,
        tag=st.just("from_the_future"),
        body=st.just(b'{"type":"from_the_future"}'),
        seq=st.integers(0, LAST),
        run_id=st.sampled_from([RUN, OTHER_RUN]),
    )


def histories(*, longest: int = 20) -> SearchStrategy[list[AnyEvent]]:
    """Return a strategy for lists of events in any order, even an impossible one."""
    return st.lists(events() | unknown_events(), max_size=longest)
