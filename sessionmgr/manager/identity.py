"""Identity of a manager: who owns a lease, and whether that owner still lives.

An owner is certain to live, certain to be gone, or neither. Numbers of processes count only in the
PID namespace that gave them out, and only where /proc shows this very process; everywhere else
nothing is certain, and the lease itself decides until it expires.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.process import proc
from sessionmgr.store import is_held
from sessionmgr.store.row import Owner

if TYPE_CHECKING:
    from sessionmgr.store.row import Lease

# The managers of this process whose blocks are not over. A forked copy of it has none of them.
_HERE: Final[set[tuple[int, str]]] = set()


class View(msgspec.Struct, frozen=True):
    """What this process can see of others: each is empty where that is not known."""

    boot_id: str
    namespace: str


_VIEWS: Final[dict[int, View]] = {}
"""What this process, by its number, can see of others."""


class Presence:
    """One manager's identity, for the length of a `with` block."""

    def __init__(self, name: str) -> None:
        pid = os.getpid()
        self.owner: Final = Owner(
            boot_id=view().boot_id,
            pid=pid,
            start=proc.start_time(pid),
            name=name,
            namespace=view().namespace,
        )

    def appear(self) -> None:
        """Be there from now on."""
        _HERE.add((os.getpid(), self.owner.name))

    def disappear(self) -> None:
        """Be gone."""
        _HERE.discard((os.getpid(), self.owner.name))


def view() -> View:
    """Return what this process can see of others.

    What is known once stays so for as long as the process lives: a start looks at many leases.
    """
    pid = os.getpid()
    if pid not in _VIEWS:
        seen = View(proc.boot(), proc.namespace())
        if not (seen.boot_id and seen.namespace):
            return seen
        _VIEWS.clear()  # of the process that this one was forked from
        _VIEWS[pid] = seen
    return _VIEWS[pid]


def is_gone(owner: Owner) -> bool:
    """Say whether a manager is certainly no more: it ended, or its process, or its machine."""
    return lives(owner, view()) is False


def is_alive(owner: Owner) -> bool:
    """Say whether a manager's process certainly runs: suspended or stopped counts as running."""
    return lives(owner, view()) is True


def is_live(lease: Lease, now: int) -> bool:
    """Say whether a lease still keeps other managers out at `now`, in milliseconds since 1970."""
    return is_held(lease, now, is_gone, is_alive)


def describe_holder(owner: object, milliseconds: int) -> str:
    """Describe for people who holds a lease that has so many milliseconds left."""
    if not isinstance(owner, Owner):
        return str(owner)
    left = f"its lease lasts {max(milliseconds, 0) / 1000:.0f} s more, unless it is renewed"
    match lives(owner, view()):
        case True:
            return f"process {owner.pid} on this machine, which is running; {left}"
        case False:
            return f"process {owner.pid}, which has ended"
        case None:
            return (
                f"process {owner.pid}, which cannot be seen from here (it is in another container,"
                f" or /proc does not show it); {left}"
            )


def lives(owner: Owner, seen: View) -> bool | None:
    """Say whether a manager lives, by what can be seen from here; None if nothing is certain."""
    if (os.getpid(), owner.name) in _HERE:
        return True
    if not (seen.boot_id and owner.boot_id):
        return None
    if owner.boot_id != seen.boot_id:
        return False
    if not owner.namespace or owner.namespace != seen.namespace:
        return None
    if owner.pid == os.getpid() and owner.start == proc.start_time(owner.pid):
        return False  # one of this process whose block is over
    return proc.is_running(owner.pid, owner.start)
