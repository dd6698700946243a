"""The envelope of an event: the fields that every event has."""

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
    gc=False,  # scalars and JSON: no reference cycle is possible
    tag=_tag,
    tag_field="type",
    forbid_unknown_fields=True,
):
    """Something that happened in a session.

    An adapter sets the fields of the event's type; the recorder stamps the others. `seq` counts
    the events of a session from 1; 0 means that the event is not recorded yet.
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
    """True if the provider did not report this and sessionmgr inferred it."""
    raw: Json | UnsetType = UNSET
    """The provider's own frame, unchanged, if raw frames were requested."""
    # The object that the event was decoded from, if it has unknown fields: encoded again with it.
    # The name cannot collide with a field of foreign JSON, and is never written.
    source: dict[str, Json] | UnsetType = msgspec.field(default=UNSET, name="~source")
    type: ClassVar[str]
    """The tag of the type, as written; each type declares it as a `Literal`."""

    def __init_subclass__(cls) -> None:
        """Set the tag of the type once: readers use it for every event."""
        super().__init_subclass__()
        cls.type = _tag(cls.__name__)

    def stamped(
        self, *, seq: int, at: str, session_id: str, run_id: str | None, provider: str
    ) -> Self:
        """Return the event with the fields that the recorder sets."""
        return msgspec.structs.replace(
            self, seq=seq, at=at, session_id=session_id, run_id=run_id, provider=provider
        )


E = TypeVar("E", bound=Event)


def stamp(
    events: Sequence[E], first: int, at: str, session_id: str, run_id: str | None, provider: str
) -> list[E]:
    """Return the events with the fields that the recorder sets, numbered from `first`."""
    put = msgspec.structs.replace
    return [
        put(event, seq=seq, at=at, session_id=session_id, run_id=run_id, provider=provider)
        for seq, event in enumerate(events, first)
    ]


class UnknownEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a type that this version does not know; it is stored and encoded unchanged."""

    type: ClassVar[Literal["unknown"]] = "unknown"
    """A tag of its own, so that a check of `type` distinguishes it from the known events."""
    tag: str
    """The type as written in the body."""
    body: bytes
    seq: int = 0
    at: str = ""
    session_id: str = ""
    run_id: str | None = None
    provider: str = ""
