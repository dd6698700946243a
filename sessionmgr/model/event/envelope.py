"""What every event has, whatever it says: where it belongs, and its place in the order."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Literal, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from sessionmgr.model.json_codec import Json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self


def _tag(class_name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", class_name).lower()


class Event(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    gc=False,  # scalars and JSON: nothing in an event can lead back to it
    tag=_tag,
    tag_field="type",
    forbid_unknown_fields=True,
):
    """Something that happened in a session.

    An adapter makes it with the fields of its type alone; the rest is stamped on by whoever
    records it. `seq` counts the events of a session from 1, and 0 is: not recorded yet.
    """

    seq: int = 0
    """Position of the event in its session, counted from 1; 0 before it is stored."""
    at: str = ""
    """Time at which the event was recorded (RFC 3339, UTC)."""
    session_id: str = ""
    """The session (`ses_…`)."""
    run_id: str | None = None
    """The run (`run_…`); null for an event of the session as a whole."""
    provider: str = ""
    """The provider of the session."""
    parent_tool_call_id: str | UnsetType = UNSET
    """The tool call on whose behalf a sub-agent acts."""
    synthetic: bool | UnsetType = UNSET
    """True: nobody said so, we inferred it."""
    raw: Json | UnsetType = UNSET
    """What the provider said, word for word, where that was asked for."""
    # The object it was read from, where that holds more than we know: written back with it. A
    # name that nobody else's JSON has; on the wire it never stands.
    source: dict[str, Json] | UnsetType = msgspec.field(default=UNSET, name="~source")
    type: ClassVar[str]
    """The name of its type, as written; each type declares it as a `Literal`."""

    def __init_subclass__(cls) -> None:
        """Name the type: whoever follows asks each event for that."""
        super().__init_subclass__()
        cls.type = _tag(cls.__name__)

    def stamped(
        self, *, seq: int, at: str, session_id: str, run_id: str | None, provider: str
    ) -> Self:
        """Return the event as it goes into the record."""
        return msgspec.structs.replace(
            self, seq=seq, at=at, session_id=session_id, run_id=run_id, provider=provider
        )


E = TypeVar("E", bound=Event)


def stamp(
    events: Sequence[E], first: int, at: str, session_id: str, run_id: str | None, provider: str
) -> list[E]:
    """Return the events as they go into the record, numbered from `first`."""
    put = msgspec.structs.replace
    return [
        put(event, seq=seq, at=at, session_id=session_id, run_id=run_id, provider=provider)
        for seq, event in enumerate(events, first)
    ]


class UnknownEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a type that this version does not know, kept and written back as it is."""

    type: ClassVar[Literal["unknown"]] = "unknown"
    """A tag of its own, so that a check of `type` tells the known events apart."""
    tag: str
    """The type as written in the body."""
    body: bytes
    seq: int = 0
    at: str = ""
    session_id: str = ""
    run_id: str | None = None
    provider: str = ""
