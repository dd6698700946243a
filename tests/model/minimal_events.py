"""Examples of each event, with as few fields as possible."""

import msgspec
from msgspec import inspect

from sessionmgr.model import EVENT_TYPES, Json, KnownEvent, UnknownEvent, decode_event


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
