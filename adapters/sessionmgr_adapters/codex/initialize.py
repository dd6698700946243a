"""What an app-server tells of itself, before there is any thread: put together from its answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from sessionmgr.wire import ErrorResponse
from sessionmgr_adapters.codex.decode import decoded
from sessionmgr_adapters.codex.frames import Hello, Refusal

if TYPE_CHECKING:
    from sessionmgr.wire import Response

Credential: TypeAlias = Literal["api_key", "subscription", "unknown"]


class _Account(msgspec.Struct):
    type: str = ""


class _AccountRead(msgspec.Struct):
    account: _Account | None = None


def hello_of(answer: Response | ErrorResponse) -> Hello:
    """Return the answer to the greeting."""
    if isinstance(answer, ErrorResponse):
        return Hello(refusal=Refusal(answer.code or 0, answer.message))
    return decoded(answer.result, Hello) or Hello()


def introduced(hello: Hello, account: Response | ErrorResponse) -> Hello:
    """Add what it says of its account, if it does."""
    paid = None if isinstance(account, ErrorResponse) else decoded(account.result, _AccountRead)
    return replace(
        hello, account=paid.account.type if paid is not None and paid.account is not None else ""
    )


def credential_of(hello: Hello) -> Credential:
    """Return who pays."""
    known: dict[str, Credential] = {"apiKey": "api_key", "chatgpt": "subscription"}
    return known.get(hello.account, "unknown")
