"""The protocol of a dialect: reads one model API into `ModelRequest`, and writes its replies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final, Protocol, cast

import msgspec

from sessionmgr.model import Json, encode_json
from sessionmgr.testing.model_server.http import HttpRequest
from sessionmgr.testing.model_server.request import ModelRequest, RequestItem, UserPrompt
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
    """An answer without a reply of a model."""

    status: int = 200
    body: Json = None
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])

    @property
    def data(self) -> bytes:
        """The body as bytes."""
        return b"" if self.body is None else encode_json(self.body)


class DelayedBytes(msgspec.Struct, frozen=True):
    """Some bytes, and the seconds to wait before they are sent."""

    data: bytes
    pause: float = 0.0


class ReplyWriter(ABC):
    """Writer of one reply in the form of its API."""

    conversation: ClassVar[str]
    """The field of the request with the conversation."""

    def __init__(
        self, request: ModelRequest, reply: int, stop: ModelStop | None, use: ModelUse | None
    ) -> None:
        self.request: Final = request
        self.reply: Final = reply
        self.stop: Final = stop
        self._use: Final = use
        self.characters = 0
        """The number of characters in the reply so far."""

    @property
    def key(self) -> str:
        """The part of the reply's id that no other reply has."""
        return f"{self.request.key}_{self.reply}_{self.request.attempt}"

    @property
    def use(self) -> ModelUse:
        """The tokens of the script, or else an estimate."""
        if self._use is not None:
            return self._use
        asked = len(encode_json(self.request.body.get(self.conversation)))
        return ModelUse(input=estimate_tokens(asked), output=estimate_tokens(self.characters))

    @abstractmethod
    def open(self) -> bytes:
        """Return the start of the stream."""

    @abstractmethod
    def encode_move(self, move: ModelSay | ModelThink | ModelCall) -> Iterator[DelayedBytes]:
        """Yield the bytes of a move."""

    @abstractmethod
    def fault(self, fault: ModelFault) -> bytes:
        """Return an error in the middle of the stream."""

    @abstractmethod
    def close(self) -> bytes:
        """Return the regular end of the stream."""

    @abstractmethod
    def whole(self) -> Json:
        """Return the complete reply, for a client that does not stream."""


class ApiDialect(Protocol):
    """One model API."""

    name: str
    malformed: str
    """An event of a stream that the API's clients read, with invalid data."""

    def read(self, http: HttpRequest) -> ModelRequest | PlainAnswer | None:
        """Read a request; None if it does not belong to this API."""
        ...

    def reply_writer(
        self, request: ModelRequest, reply: int, stop: ModelStop | None, use: ModelUse | None
    ) -> ReplyWriter:
        """Return the writer of a reply, and the stop reason for its end."""
        ...

    def refuse(self, refusal: ModelRefuse | ModelUsageLimit) -> PlainAnswer:
        """Return the answer for an error."""
        ...

    def limits(self, limits: ModelLimits) -> Mapping[str, str]:
        """Return the headers for limits."""
        ...


def retry_headers(refusal: ModelRefuse) -> dict[str, str]:
    """Return the headers of a refusal, with the one that says when to try again."""
    headers = dict(refusal.headers)
    if refusal.retry_after is not None:
        headers["retry-after"] = f"{refusal.retry_after:g}"
    return headers


def last_prompt(items: Sequence[RequestItem]) -> str:
    """Return the user's last message; "" if there is none."""
    return next((each.text for each in reversed(items) if isinstance(each, UserPrompt)), "")


def server_event(kind: str, data: Mapping[str, Json]) -> bytes:
    """Return a server-sent event whose data repeats its kind."""
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), encode_json({"type": kind, **data}))


def data_event(data: Mapping[str, Json]) -> bytes:
    """Return a server-sent event that has data and no kind."""
    return b"data: %b\n\n" % encode_json({**data})


def split_text(text: str, count: int) -> Sequence[str]:
    """Cut a text into `count` pieces of nearly equal length; into fewer if it is too short."""
    count = max(1, min(count, len(text)))
    return [text[len(text) * n // count : len(text) * (n + 1) // count] for n in range(count)]


def text_of(content: Json) -> str:
    """Return a content that is a text, or the joined texts of its parts."""
    if isinstance(content, str):
        return content
    parts = [as_object(each) for each in content] if isinstance(content, list) else []
    return "\n".join(text for part in parts if isinstance(text := part.get("text"), str))


def estimate_tokens(characters: int) -> int:
    """Return an estimate of the tokens in some characters."""
    return max(1, characters // 4)


def as_object(value: Json) -> Mapping[str, Json]:
    """Return a JSON object unchanged, and an empty one for any other value."""
    return cast("Mapping[str, Json]", value) if isinstance(value, dict) else {}


def list_member(value: Mapping[str, Json], name: str) -> list[Json]:
    """Return a list member of an object, and an empty list for any other value."""
    found = value.get(name)
    return found if isinstance(found, list) else []
