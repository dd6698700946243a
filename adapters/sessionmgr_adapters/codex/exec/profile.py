"""The profile of a `codex exec` run: its settings that other users must not read.

Every user of the machine can read a command line. With `--profile`, Codex lays a file
`NAME.config.toml` of its home over the user's configuration, and its command line over that, table
by table. The adapter therefore writes the secret settings to a private file, links to it from the
home while Codex runs, and passes all other settings on the command line as before. No other
configuration takes precedence over these settings.
"""

from __future__ import annotations

import secrets
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from sessionmgr.adapter import SecretFileRefused
from sessionmgr.process import DIRECTORY_MODE, is_secret_name, url_passwords

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from pathlib import Path

    from sessionmgr.model import Json

SUFFIX: Final = ".config.toml"
PROFILE_PREFIX: Final = "sessionmgr-"
SECRET_TABLES: Final = frozenset({"env", "http_headers", "query_params"})
"""Tables in which any value may be secret, regardless of its name."""
NAMES_OF_VARIABLES: Final = frozenset({"env_http_headers", "env_key", "env_vars"})
"""Settings that name the variables which hold secrets, but hold none themselves."""
_FLAGS: Final = ("-p", "--profile")


def split_secrets(settings: Mapping[str, Json]) -> tuple[dict[str, Json], dict[str, Json]]:
    """Split settings into public and secret ones, each in its tables."""
    plain: dict[str, Json] = {}
    secret: dict[str, Json] = {}
    for name, value in settings.items():
        if isinstance(value, dict) and name not in NAMES_OF_VARIABLES:
            in_table = name in SECRET_TABLES
            inner, hidden = ({}, dict(value)) if in_table else split_secrets(value)
            plain[name] = inner
            if hidden:
                secret[name] = hidden
        elif _is_secret(name, value):
            secret[name] = value
        else:
            plain[name] = value
    return plain, secret


def _is_secret(name: str, value: Json) -> bool:
    if name in NAMES_OF_VARIABLES:
        return False
    if isinstance(value, list):  # a list comes from one layer and is not merged
        return any(_is_secret(name, each) for each in value)
    if not isinstance(value, str):
        return False
    return is_secret_name(name) or any(url_passwords([value]))


def require_no_user_profile(program: Sequence[str]) -> None:
    """Refuse a profile that the user has named: Codex accepts only one.

    Raises:
        SecretFileRefused: The program's arguments name one.
    """
    for each in program[1:]:
        if each in _FLAGS or each.startswith(("--profile=", "-p=")):
            raise SecretFileRefused(
                f"options.command names a profile ({each}), and Codex accepts only one: secrets "
                "among these settings need another; put them into the named profile, or "
                "remove options.exec"
            )


@contextmanager
def linked_profile(home: Path, file: Path) -> Generator[str, None, None]:
    """Link a file of settings into a Codex home as a profile, and yield the profile's name.

    Raises:
        SecretFileRefused: The link cannot be made.
    """
    name = f"{PROFILE_PREFIX}{secrets.token_hex(8)}"
    link = home / f"{name}{SUFFIX}"
    try:
        home.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
        _remove_dangling_links(home)
        link.symlink_to(file)
    except OSError as error:
        raise SecretFileRefused(
            f"{link}: {error.strerror or error}; codex exec gets secret settings "
            "through a file there: make its directory writable, or remove options.exec"
        ) from error
    try:
        yield name
    finally:
        with suppress(OSError):  # a dangling link; the next run removes it
            link.unlink(missing_ok=True)


def _remove_dangling_links(home: Path) -> None:
    """Remove dangling links left by a crash: their targets are gone."""
    for each in home.glob(f"{PROFILE_PREFIX}*{SUFFIX}"):
        if each.is_symlink() and _is_dangling(each):
            with suppress(OSError):  # another user's
                each.unlink(missing_ok=True)


def _is_dangling(link: Path) -> bool:
    """Whether a link's target is gone; False if it is in a private directory of another user."""
    try:
        link.stat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False
