"""What an app-server tells of itself, before there is any thread: put together from its answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from sessionmgr.wire import ErrorResponse
from sessionmgr_adapters.codex.frames import Hello, Refusal, decoded

if TYPE_CHECKING:
    from sessionmgr.wire import Response

Credential: TypeAlias = Literal["api_key", "subscription", "unknown"]


class _ModelProvider(msgspec.Struct):
    env_key: str | None = None


class _Variables(msgspec.Struct):
    exclude: tuple[str, ...] | None = None


class Configured(msgspec.Struct):
    """What is of interest in its configuration."""

    model_providers: dict[str, _ModelProvider] | None = None
    shell_environment_policy: _Variables | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """The variables in which keys to models are."""
        return tuple(each.env_key for each in (self.model_providers or {}).values() if each.env_key)


class _Config(msgspec.Struct):
    config: Configured


class _Account(msgspec.Struct):
    type: str = ""


class _AccountRead(msgspec.Struct):
    account: _Account | None = None


def hello_of(answer: Response | ErrorResponse) -> Hello:
    """Return the answer to the greeting."""
    if isinstance(answer, ErrorResponse):
        return Hello(refusal=Refusal(answer.code or 0, answer.message))
    return decoded(answer.result, Hello) or Hello()


def introduced(
    hello: Hello, config: Response | ErrorResponse, account: Response | ErrorResponse
) -> Hello:
    """Add what it says of its configuration and its account, as far as it does."""
    read = None if isinstance(config, ErrorResponse) else decoded(config.result, _Config)
    paid = None if isinstance(account, ErrorResponse) else decoded(account.result, _AccountRead)
    settings = read.config if read is not None else Configured()
    policy = settings.shell_environment_policy or _Variables()
    return replace(
        hello,
        keys=settings.keys,
        hidden=policy.exclude or (),
        account=paid.account.type if paid is not None and paid.account is not None else "",
    )


def credential_of(hello: Hello) -> Credential:
    """Return who pays."""
    known: dict[str, Credential] = {"apiKey": "api_key", "chatgpt": "subscription"}
    return known.get(hello.account, "unknown")
