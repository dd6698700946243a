"""What is said to a Codex app-server on behalf of one thread."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from sessionmgr.model import Json
from sessionmgr.wire import Id


class Call(msgspec.Struct, frozen=True):
    """A request. `id` is the conversation's own: the connection gives it another on the wire."""

    id: int
    method: str
    params: dict[str, Json]


class Reply(msgspec.Struct, frozen=True):
    """The answer to a request of theirs: a result, or with an `error`, a refusal."""

    id: Id
    result: Json = None
    error: str | None = None


Told: TypeAlias = Call | Reply
