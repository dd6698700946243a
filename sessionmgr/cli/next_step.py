"""What to type next, so that it can be typed as it stands."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sessionmgr.cli.configuration import Configuration


def to_type(configuration: Configuration, *words: str) -> str:
    """Return a command of ours as it is typed, for the store that this one was given."""
    given = configuration.sources.get("store") == "--store"
    store = ["--store", str(configuration.store)] if given else []
    return shlex.join(["sessionmgr", *words, *store])
