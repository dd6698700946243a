"""Environment of a child: built name by name, never inherited as a whole.

It consists of a base that every program needs, the names that the adapter declares for its
provider, the variables of the job, and the tag of the tree; later values replace earlier ones.
Variables that mark a program as an agent's tool are never passed on: a child of this library is no
tool of an agent, and some agents behave differently as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Final
from urllib.parse import unquote

import msgspec

from sessionmgr.process.errors import EnvironmentVariableInvalid
from sessionmgr.process.secret_names import is_secret_name

BASE: Final = (
    *("PATH", "HOME", "LANG", "LC_*", "TERM", "TMPDIR", "USER", "SHELL", "XDG_*"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY", "NO_PROXY"),
    *("http_proxy", "https_proxy", "all_proxy", "ftp_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NIX_SSL_CERT_FILE", "CURL_CA_BUNDLE"),
    *("REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "AWS_CA_BUNDLE"),
)
"""Names that every child gets if they are set. Names may be patterns with `*`, `?` and `[…]`."""

NESTING: Final = (
    *("CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_PID"),
    *("CLAUDE_AGENT_SDK_VERSION", "CODEX_THREAD_ID", "CODEX_TOOL_CALL_ID", "CODEX_CI"),
    *("CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "GEMINI_CLI", "QWEN_CODE"),
    "OPENCODE",
)
"""Names that agents set in the environment of the tools they run."""

SHORTEST_SECRET: Final = 8
FEWEST_CHARACTERS: Final = 4
_OFF: Final = frozenset({"", "0", "false", "no", "off"})
_USER_INFO: Final = re.compile(r"://(?P<user>[^/\s:@]*)(?::(?P<password>[^/\s@]*))?@")


class ConditionalNames(msgspec.Struct, frozen=True):
    """Names that are passed on only if a switch is on, such as cloud credentials."""

    switches: tuple[str, ...]
    """The names are passed on if one of these is set to anything but 0, false, no or off."""
    names: tuple[str, ...]


class EnvironmentSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Environment that an adapter declares for its provider; every name may be a pattern."""

    names: tuple[str, ...] = ()
    when: tuple[ConditionalNames, ...] = ()
    secret: tuple[str, ...] = ()
    """Names that hold secrets although they do not look like it."""


def build_environment(
    source: Mapping[str, str],
    declared: EnvironmentSpec | None = None,
    job: Mapping[str, str] | None = None,
    tag: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return a child's whole environment, selected from `source`, usually `os.environ`.

    Raises:
        EnvironmentVariableInvalid: The job sets a variable that is never passed on or is reserved.
    """
    declared, job, tag = declared or EnvironmentSpec(), job or {}, tag or {}
    for name, value in job.items():
        if not name or "=" in name or "\0" in name or "\0" in value:
            why = "its value contains a NUL byte" if name and "=" not in name else "invalid name"
            raise EnvironmentVariableInvalid(repr(name), why)
        if name in NESTING:
            raise EnvironmentVariableInvalid(name, "it marks a program as the tool of an agent")
        if name in tag:
            raise EnvironmentVariableInvalid(
                name, "sessionmgr sets it to the tag of the process tree"
            )
    chosen = {**_selected_names(source, (*BASE, *declared.names)), **job}
    for when in declared.when:
        if _is_on(chosen, when.switches):
            chosen = {**_selected_names(source, when.names), **chosen}
    return {**chosen, **tag}


def secret_values(
    env: Mapping[str, str], declared: EnvironmentSpec | None = None
) -> tuple[str, ...]:
    """Return the values that must not be stored or shown, the longest first.

    They are the values of variables whose names indicate secrets (`secret_names`) or that the
    adapter declares, and user and password in addresses such as a proxy's. A value with less than
    8 characters, or less than 4 different ones, does not count: replacing every "1" or "none"
    would hide everything else.
    """
    patterns = declared.secret if declared else ()
    named = (
        value
        for name, value in env.items()
        if is_secret_name(name) or _matches(name.upper(), patterns)
    )
    found = {
        each for value in (*named, *url_passwords(env.values())) for each in (value, value.strip())
    }
    return tuple(sorted(filter(is_secret_value, found), key=lambda each: (-len(each), each)))


def _selected_names(source: Mapping[str, str], patterns: tuple[str, ...]) -> dict[str, str]:
    return {
        name: value
        for name, value in source.items()
        if name not in NESTING and _matches(name, patterns)
    }


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _is_on(env: Mapping[str, str], switches: tuple[str, ...]) -> bool:
    return any(
        value.strip().lower() not in _OFF for name, value in env.items() if _matches(name, switches)
    )


def url_passwords(values: Iterable[str]) -> Iterator[str]:
    """Yield the passwords in values that are URLs."""
    for value in values:
        for found in _USER_INFO.finditer(value):
            # `https://TOKEN@host` has the secret in the place of the user name.
            secret = found["user"] if found["password"] is None else found["password"]
            yield secret
            yield unquote(secret)


def is_secret_value(value: str) -> bool:
    """Return whether a value is long and varied enough to be a secret."""
    return len(value) >= SHORTEST_SECRET and len(set(value)) >= FEWEST_CHARACTERS
