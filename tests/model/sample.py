"""Events to try things on: an example of each type, and a strategy that makes any."""

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec import inspect

from sessionmgr.model import EVENT_TYPES, Event, Json, KnownEvent, UnknownEvent, decode_event

JSON: SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


def values(kind: inspect.Type) -> SearchStrategy[object]:
    """Make a strategy for the values of a field of this type."""
    match kind:
        case inspect.AnyType():
            return JSON.map(lambda made: made)
        case inspect.StrType():
            return st.text(max_size=6)
        case inspect.BoolType():
            return st.booleans()
        case inspect.IntType():
            return st.integers(0, 10**6)
        case inspect.FloatType():
            return st.floats(0, 10**6)
        case inspect.NoneType():
            return st.none()
        case inspect.LiteralType(values=choices):
            return st.sampled_from(choices)
        case inspect.EnumType(cls=cls):
            return st.sampled_from(list(cls))
        case inspect.UnionType(types=types):
            known = [each for each in types if not isinstance(each, inspect.CustomType)]
            return st.one_of([values(each) for each in known])
        case inspect.VarTupleType(item_type=items):
            return st.lists(values(items), max_size=2).map(tuple)
        case inspect.DictType(value_type=items):
            return st.dictionaries(st.text(max_size=4), values(items), max_size=2)
        case inspect.StructType(cls=cls):
            return made_of(cls)
        case _:
            raise TypeError(f"no strategy for {kind}")


def made_of(cls: type[msgspec.Struct], **fixed: SearchStrategy[object]) -> SearchStrategy[object]:
    """Make a strategy for a struct, its optional envelope fields apart."""
    info = inspect.type_info(cls)
    assert isinstance(info, inspect.StructType)
    fields = {
        field.name: values(field.type)
        for field in info.fields
        if field.name not in {"source", "parent_tool_call_id", "synthetic", "raw"}
    }
    return st.builds(cls, **(fields | fixed))


RUN, OTHER = "run_1", "run_2"

ENVELOPE: dict[str, SearchStrategy[object]] = {
    "at": st.just("2026-01-02T03:04:05.678Z"),
    "session_id": st.just("ses_1"),
    "provider": st.just("echo"),
    "run_id": st.sampled_from([RUN, RUN, RUN, RUN, OTHER, None]),
    "seq": st.integers(0, 50),
}
IDS = st.sampled_from(["a", "b", "c"])
OF_FEW = ("tool_call_id", "approval_id", "message_id")


def of_type(cls: type[KnownEvent]) -> SearchStrategy[object]:
    """Make a strategy for events of one type, whose ids meet each other again."""
    few = {name: IDS for name in OF_FEW if name in cls.__struct_fields__}
    return made_of(cls, **(ENVELOPE | few))


UNKNOWN = st.builds(
    UnknownEvent,
    type=st.just("from_the_future"),
    body=st.just(b'{"type":"from_the_future"}'),
    seq=st.integers(0, 50),
    run_id=st.sampled_from([RUN, OTHER]),
)
EVENTS: SearchStrategy[Event] = st.one_of([of_type(cls) for cls in EVENT_TYPES.values()]).map(
    lambda made: made if isinstance(made, Event) else Event()
)


def minimal(name: str) -> KnownEvent:
    """Make an event of this type with no more than it needs."""
    info = inspect.type_info(EVENT_TYPES[name])
    assert isinstance(info, inspect.StructType)
    needed = {field.encode_name: _least(field.type) for field in info.fields if field.required}
    event = decode_event(msgspec.json.encode({"type": name, **needed}))
    assert not isinstance(event, UnknownEvent), event
    return event


def _least(kind: inspect.Type) -> Json:
    match kind:
        case inspect.IntType() | inspect.FloatType():
            return 1
        case inspect.LiteralType(values=choices):
            return choices[0]
        case inspect.VarTupleType():
            return []
        case inspect.StructType(cls=cls):
            return {"kind": "refused", "message": "no"} if cls.__name__ == "Failure" else {}
        case _:
            return "x"
