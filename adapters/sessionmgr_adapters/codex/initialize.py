"""What an app-server tells of itself, before there is any thread: put together from its answers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from sessionmgr.adapter.kit.json_rpc_caller import Refusal
from sessionmgr.adapter.kit.version import outdated
from sessionmgr.wire import ErrorResponse
from sessionmgr_adapters.codex.decode import decoded
from sessionmgr_adapters.codex.frames import Hello

if TYPE_CHECKING:
    from sessionmgr.model import Failure
    from sessionmgr.wire import Response

OLDEST: Final = (0, 163, 0)
_VERSION: Final = re.compile(r"/(\d+)\.(\d+)\.(\d+)")


def version_in(user_agent: str) -> str | None:
    """Return the version that an app-server names when it is greeted."""
    found = _VERSION.search(user_agent)
    return None if found is None else ".".join(found.groups())


def too_old(version: str | None) -> Failure | None:
    """Return the failure that a version is which we cannot talk to."""
    return outdated("Codex", version, OLDEST)


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
