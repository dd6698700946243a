"""What an app-server tells of itself, before there is any thread: put together from its answers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from sessionmgr.model import Json
from sessionmgr.wire import ErrorResponse
from sessionmgr_adapters.codex.frames import Hello, Refusal, decoded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sessionmgr.wire import Response

_ENV_KEY: Final = re.compile(r"model_providers\..+\.env_key\.", re.DOTALL)

Credential: TypeAlias = Literal["api_key", "subscription", "unknown"]


class _ModelProvider(msgspec.Struct):
    env_key: str | None = None


class _Variables(msgspec.Struct):
    exclude: tuple[str, ...] | None = None


class Configured(msgspec.Struct):
    """What is of interest in its configuration."""

    mcp_servers: Json = None
    model_providers: dict[str, _ModelProvider] | None = None
    shell_environment_policy: _Variables | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """The variables in which keys to models are."""
        return tuple(each.env_key for each in (self.model_providers or {}).values() if each.env_key)

    @property
    def hidden(self) -> tuple[str, ...]:
        """The variables that commands do not see."""
        policy = self.shell_environment_policy
        return () if policy is None else policy.exclude or ()

    @property
    def servers(self) -> dict[str, tuple[str, ...]]:
        """The MCP servers, with the tools of theirs for which something is configured."""
        found = self.mcp_servers.items() if isinstance(self.mcp_servers, dict) else ()
        return {name: tuple(_tools(server)) for name, server in found}


def _tools(server: Json) -> Iterable[str]:
    tools = server.get("tools") if isinstance(server, dict) else None
    return tools if isinstance(tools, dict) else ()


def keys_in(overrides: Mapping[str, Json]) -> tuple[str, ...]:
    """Return the variables with keys that overrides of the configuration name, dotted or not."""
    found = overrides.items()
    return tuple(key for name, value in found for key in _keys(f"{name}.", value))


def _keys(name: str, value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        for inner, each in value.items():
            yield from _keys(f"{name}{inner}.", each)
    elif isinstance(value, str) and _ENV_KEY.fullmatch(name):
        yield value


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
    return replace(
        hello,
        keys=settings.keys,
        hidden=settings.hidden,
        servers=settings.servers,
        account=paid.account.type if paid is not None and paid.account is not None else "",
    )


def credential_of(hello: Hello) -> Credential:
    """Return who pays."""
    known: dict[str, Credential] = {"apiKey": "api_key", "chatgpt": "subscription"}
    return known.get(hello.account, "unknown")
