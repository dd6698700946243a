"""Who a manager is, so that others can tell whether it still lives."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from sessionmgr.process import proc
from sessionmgr.store.row import Owner

if TYPE_CHECKING:
    pass

# The managers of this process whose blocks are not over.
_HERE: Final[set[str]] = set()


class Presence:
    """One manager's identity, for the length of a `with` block."""

    def __init__(self, name: str) -> None:
        pid = os.getpid()
        self.owner: Final = Owner(
            boot_id=proc.boot(), pid=pid, start=proc.start_time(pid), name=name
        )

    def appear(self) -> None:
        """Be there from now on."""
        _HERE.add(self.owner.name)

    def disappear(self) -> None:
        """Be gone."""
        _HERE.discard(self.owner.name)


def is_gone(owner: Owner) -> bool:
    """Say whether a manager is certainly no more: it ended, or its process, or its machine."""
    if owner.boot_id != proc.boot():
        return True
    if owner.pid == os.getpid() and owner.start == proc.start_time(owner.pid):
        return owner.name not in _HERE
    return proc.start_time(owner.pid) != owner.start
