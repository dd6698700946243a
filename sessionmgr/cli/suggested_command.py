"""Commands that messages suggest, ready to be typed."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sessionmgr.cli.config.configuration import Configuration


def suggested_command(configuration: Configuration, *words: str) -> str:
    """Return a command line of sessionmgr for the store and the agents of this command."""
    files = {"store": configuration.store, "agents": configuration.agents}
    flags = [
        word
        for name, file in files.items()
        if configuration.sources.get(name) == f"--{name}"
        for word in (f"--{name}", str(file))
    ]
    return shlex.join(["sessionmgr", *words, *flags])


def without_flags(words: Iterable[str], *flags: str) -> list[str]:
    """Return the words of a command without these flags and their values."""
    left: list[str] = []
    is_value = False
    for word in words:
        is_flag = word in flags
        if not (is_value or is_flag or word.startswith(tuple(f"{each}=" for each in flags))):
            left.append(word)
        is_value = is_flag
    return left
