"""Settings of ours that an agent uses unless its user or administrator sets others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping


class DefaultSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A file of this package with the settings, and how the agent finds it."""

    file: str
    """The name of the file."""
    variable: str
    """The variable with which the agent finds the file."""
    others: frozenset[str]
    """Further variables: with one of them, the settings come from a file of the administrator."""
    places: tuple[str, ...]
    """The administrator's files, in whose stead the agent would read ours."""

    def variables(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return the variable for the agent; none if an administrator's file is there."""
        is_set = not env.keys().isdisjoint({self.variable, *self.others})
        if is_set or any(map(Path.exists, map(Path, self.places))):
            return {}
        return {self.variable: str(Path(__file__).with_name(self.file))}
