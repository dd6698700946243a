"""What a workspace itself says may be done in it: the file `PERMISSIONS.json` in its directory.

    {"tier": "standard", "note": "Leave the folder `vendor` alone."}

A tier only ever narrows: `readonly` looks, `standard` edits as well, `custom` has the tools that it
lists, and `full` is whatever the run may do without it. The note is for the model to read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

import msgspec

from sessionmgr_adapters.claude.allowed import KNOWN, nearest

NAME: Final = "PERMISSIONS.json"
LARGEST: Final = 64 * 1024
READONLY: Final = ("Read", "Glob", "Grep", "WebFetch", "WebSearch")
STANDARD: Final = (*READONLY, "Edit", "MultiEdit", "Write", "NotebookEdit")


class WorkspaceInvalidError(Exception):
    """The file cannot be understood; the text names it, and says why."""


class Workspace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What may be done in a directory."""

    tier: Literal["readonly", "standard", "full", "custom"] = "full"
    tools: tuple[str, ...] = ()
    """The tools of the tier `custom`."""
    note: str = ""

    @property
    def is_narrow(self) -> bool:
        """Whether there is something that a run may not do for it."""
        return self.tier != "full"

    def cut(self, wanted: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """Return which tools are left of those that are wanted; None is all, on either side."""
        tiers = {"readonly": READONLY, "standard": STANDARD, "custom": self.tools}
        allowed = tiers.get(self.tier)
        if allowed is None or wanted is None:
            return allowed if wanted is None else wanted
        return tuple(each for each in wanted if each in allowed)


def workspace_of(directory: str) -> Workspace:
    """Read what a directory says of itself; nothing is said where there is no such file.

    Raises:
        WorkspaceInvalidError: There is one, and it cannot be understood.
    """
    path = Path(directory, NAME)
    try:
        with path.open("rb") as file:
            said = file.read(LARGEST + 1)
    except FileNotFoundError:
        return Workspace()
    except OSError as error:
        raise WorkspaceInvalidError(f"{path}: {error.strerror or error}") from None
    if len(said) > LARGEST:
        raise WorkspaceInvalidError(f"{path}: it has more than {LARGEST} bytes")
    try:
        found = msgspec.json.decode(said, type=Workspace)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise WorkspaceInvalidError(f"{path}: {error}") from None
    if found.tools and found.tier != "custom":
        raise WorkspaceInvalidError(f"{path}: `tools` are for the tier `custom`")
    for each in found.tools:
        if each not in KNOWN:
            raise WorkspaceInvalidError(f"{path}: nobody knows a tool {each!r}; {nearest(each)!r}?")
    return found
