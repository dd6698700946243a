"""The profile of a `codex exec`: those of its settings that nobody else may read.

A setting on a command line is read by everybody on the machine. Codex lays a file
`NAME.config.toml` of its home over the user's configuration where it is started with `--profile`,
and what stands on its command line over that, table by table. So what is secret goes into a private
file, to which a link in the home leads for as long as Codex runs, and all the rest is said on the
command line as before: nothing else in the configuration comes before it.
"""

from __future__ import annotations

import secrets
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from sessionmgr.errors import ProfileRefused
from sessionmgr.process.environment import user_infos
from sessionmgr.process.private_path import DIRECTORY_MODE
from sessionmgr.process.secret_names import is_secret_name

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from pathlib import Path

    from sessionmgr.model import Json

SUFFIX: Final = ".config.toml"
OURS: Final = "sessionmgr-"
SECRET_TABLES: Final = frozenset({"env", "http_headers", "query_params"})
"""Tables in which any value may be secret, whatever its name."""
NAMES_OF_VARIABLES: Final = frozenset({"env_http_headers", "env_key", "env_vars"})
"""What says in which variables secrets stand, and holds none."""
_FLAGS: Final = ("-p", "--profile")


def parted(settings: Mapping[str, Json]) -> tuple[dict[str, Json], dict[str, Json]]:
    """Return settings without what is secret in them, and that alone, each in its tables."""
    plain: dict[str, Json] = {}
    secret: dict[str, Json] = {}
    for name, value in settings.items():
        if isinstance(value, dict) and name not in NAMES_OF_VARIABLES:
            in_table = name in SECRET_TABLES
            inner, hidden = ({}, dict(value)) if in_table else parted(value)
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
    if isinstance(value, list):  # a list is of one layer, and not joined with another
        return any(_is_secret(name, each) for each in value)
    if not isinstance(value, str):
        return False
    return is_secret_name(name) or any(user_infos([value]))


def require_free(program: Sequence[str]) -> None:
    """Make sure that the user has not named a profile: Codex takes one.

    Raises:
        ProfileRefused: The program's arguments name one.
    """
    for each in program[1:]:
        if each in _FLAGS or each.startswith(("--profile=", "-p=")):
            raise ProfileRefused(
                f"options.command names a profile ({each}), and Codex takes one only: the secrets "
                "among these settings would have to be in another; put them into the first, or "
                "have the run done without options.exec"
            )


@contextmanager
def linked(home: Path, file: Path) -> Generator[str, None, None]:
    """Have a private file be a profile in a home of Codex's, and say what it is called.

    Raises:
        ProfileRefused: There is no link to be made.
    """
    name = f"{OURS}{secrets.token_hex(8)}"
    link = home / f"{name}{SUFFIX}"
    try:
        home.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
        _sweep(home)
        link.symlink_to(file)
    except OSError as error:
        raise ProfileRefused(
            f"{link}: {error.strerror or error}; the secrets among these settings reach codex exec "
            "by a file there: make its directory writable, or leave out options.exec"
        ) from error
    try:
        yield name
    finally:
        with suppress(OSError):  # it leads nowhere, and the next run takes it away
            link.unlink(missing_ok=True)


def _sweep(home: Path) -> None:
    """Take away links that a crash of ours has left: what they led to is gone."""
    for each in home.glob(f"{OURS}*{SUFFIX}"):
        if each.is_symlink() and not each.exists():
            each.unlink(missing_ok=True)
