"""What a face is: one API of models, read into `ModelRequest` and spoken in its own words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, cast

import msgspec

from sessionmgr.model import Json, encode_json
from sessionmgr.testing.model_server.http import HttpRequest
from sessionmgr.testing.model_server.request import ModelRequest
from sessionmgr.testing.model_server.script import (
    ModelCall,
    ModelFault,
    ModelLimits,
    ModelRefuse,
    ModelSay,
    ModelStop,
    ModelThink,
    ModelUsageLimit,
    ModelUse,
)


class PlainAnswer(msgspec.Struct, frozen=True):
    """An answer that no model is asked for."""

    status: int = 200
    body: Json = None
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])

    @property
    def data(self) -> bytes:
        """The body as bytes."""
        return b"" if self.body is None else encode_json(self.body)


class DelayedBytes(msgspec.Struct, frozen=True):
    """Some bytes, and how many seconds to wait before they go out."""

    data: bytes
    pause: float = 0.0


class ReplyWriter(Protocol):
    """Says one reply in the words of its API."""

    def open(self) -> bytes:
        """Begin the stream."""
        ...

    def speak(self, move: ModelSay | ModelThink | ModelCall) -> Iterator[DelayedBytes]:
        """Say, think or call."""
        ...

    def fault(self, fault: ModelFault) -> bytes:
        """Tell of an error in mid-stream."""
        ...

    def close(self) -> bytes:
        """End the stream as a whole one ends."""
        ...

    def whole(self) -> Json:
        """Return all that was spoken, for a client that does not stream."""
        ...


class ApiDialect(Protocol):
    """One API of models."""

    name: str
    malformed: str
    """An event of a stream that its clients try to read, and cannot."""

    def read(self, http: HttpRequest) -> ModelRequest | PlainAnswer | None:
        """Read a request; None if it is none of this API."""
        ...

    def speaker(
        self, request: ModelRequest, reply: int, stop: ModelStop | None, use: ModelUse | None
    ) -> ReplyWriter:
        """Return who says the reply of this number, and what it is to say at the end."""
        ...

    def refuse(self, refusal: ModelRefuse | ModelUsageLimit) -> PlainAnswer:
        """Return the answer that is an error."""
        ...

    def limits(self, limits: ModelLimits) -> Mapping[str, str]:
        """Return the headers that tell of limits."""
        ...


def server_event(kind: str, data: Mapping[str, Json]) -> bytes:
    """Return a server-sent event whose data tells its kind as well."""
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), encode_json({"type": kind, **data}))


def split_text(text: str, count: int) -> Sequence[str]:
    """Cut a text into so many pieces, as equal as can be; into fewer if it is too short."""
    count = max(1, min(count, len(text)))
    return [text[len(text) * n // count : len(text) * (n + 1) // count] for n in range(count)]


def estimate_tokens(characters: int) -> int:
    """Estimate what so many characters amount to."""
    return max(1, characters // 4)


def as_object(value: Json) -> Mapping[str, Json]:
    """Return a JSON object as it is, and an empty one for anything else."""
    return cast("Mapping[str, Json]", value) if isinstance(value, dict) else {}


def list_member(value: Mapping[str, Json], name: str) -> list[Json]:
    """Return the list of this name in an object, and an empty one for anything else."""
    found = value.get(name)
    return found if isinstance(found, list) else []
