"""Events of every type, whole logs of them, and events that nobody knows yet."""

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
# Few, so that calls meet their ends and questions their answers.
_IDS: Final = st.sampled_from(["a", "b", "c"])
_OF_FEW: Final = ("tool_call_id", "approval_id", "message_id")
_RUNS: Final = st.sampled_from([RUN, RUN, RUN, RUN, OTHER_RUN, None])


def event_of(of: type[E]) -> SearchStrategy[E]:
    """Make a strategy for events of one type, of one session and mostly of one run.

    Ids of calls, questions and messages are a few that come again.
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
    """Make a strategy for events of all types that are known."""
    known = [event_of(cast("type[Event]", of)) for of in EVENT_TYPES.values()]
    return cast("SearchStrategy[KnownEvent]", st.one_of(known))


def unknown_events() -> SearchStrategy[UnknownEvent]:
    """Make a strategy for events of a type that this version does not know."""
    return st.builds(
        UnknownEvent,
        tag=st.just("from_the_future"),
        body=st.just(b'{"type":"from_the_future"}'),
        seq=st.integers(0, LAST),
        run_id=st.sampled_from([RUN, OTHER_RUN]),
    )


def histories(*, longest: int = 20) -> SearchStrategy[list[AnyEvent]]:
    """Make a strategy for lists of events in any order, however unlikely."""
    return st.lists(events() | unknown_events(), max_size=longest)
