"""The identity of a manager: the owner of a lease, and whether that owner is alive.

An owner is provably alive, provably gone, or neither. Process numbers count only in the PID
namespace that issued them, and only if /proc shows this very process; otherwise nothing is
certain, and the lease decides until it expires.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.process import boot_id, is_running, pid_namespace, start_time
from sessionmgr.store import LeaseOwner, is_lease_held

if TYPE_CHECKING:
    from sessionmgr.store import Lease

# The open managers of this process. A forked copy of the process has none of them.
_HERE: Final[set[tuple[int, str]]] = set()


class ProcessScope(msgspec.Struct, frozen=True):
    """What this process can see of others; a field is empty if unknown."""

    boot_id: str
    namespace: str


_VIEWS: Final[dict[int, ProcessScope]] = {}
"""The scope of this process, by process number."""


class ManagerOwner:
    """The identity of one manager, from `register` to `unregister`."""

    def __init__(self, name: str) -> None:
        pid = os.getpid()
        self.owner: Final = LeaseOwner(
            boot_id=process_scope().boot_id,
            pid=pid,
            start=start_time(pid),
            name=name,
            namespace=process_scope().namespace,
        )

    def register(self) -> None:
        """Add it to the open managers of this process."""
        _HERE.add((os.getpid(), self.owner.name))

    def unregister(self) -> None:
        """Remove it from the open managers of this process."""
        _HERE.discard((os.getpid(), self.owner.name))


def process_scope() -> ProcessScope:
    """Return the scope of this process.

    It is computed once per process, because a start examines many leases.
    """
    pid = os.getpid()
    if pid not in _VIEWS:
        seen = ProcessScope(boot_id(), pid_namespace())
        if not (seen.boot_id and seen.namespace):
            return seen
        _VIEWS.clear()  # the parent's entries, after a fork
        _VIEWS[pid] = seen
    return _VIEWS[pid]


def is_owner_gone(owner: LeaseOwner) -> bool:
    """Return whether a manager is certainly gone: it closed, its process ended, or its machine."""
    return owner_liveness(owner, process_scope()) is False


def is_owner_alive(owner: LeaseOwner) -> bool:
    """Return whether a manager's process certainly runs: suspended or stopped counts as running."""
    return owner_liveness(owner, process_scope()) is True


def is_lease_valid(lease: Lease, now: int) -> bool:
    """Return whether a lease still excludes other managers at `now`, in ms since 1970."""
    return is_lease_held(lease, now, is_owner_gone, is_owner_alive)


def describe_holder(owner: object, milliseconds: int) -> str:
    """Describe the holder of a lease that has so many milliseconds left."""
    if not isinstance(owner, LeaseOwner):
        return str(owner)
    left = f"its lease lasts {max(milliseconds, 0) / 1000:.0f} s more, unless it is renewed"
    match owner_liveness(owner, process_scope()):
        case True:
            return f"process {owner.pid} on this machine, which is running; {left}"
        case False:
            return f"process {owner.pid}, which has ended"
        case None:
            return (
                f"process {owner.pid}, which cannot be seen from here (it is in another container,"
                f" or /proc does not show it); {left}"
            )


def owner_liveness(owner: LeaseOwner, seen: ProcessScope) -> bool | None:
    """Return whether a manager is alive, judging from here; None if uncertain."""
    if (os.getpid(), owner.name) in _HERE:
        return True
    if not (seen.boot_id and owner.boot_id):
        return None
    if owner.boot_id != seen.boot_id:
        return False
    if not owner.namespace or owner.namespace != seen.namespace:
        return None
    if owner.pid == os.getpid() and owner.start == start_time(owner.pid):
        return False  # a closed manager of this process
    return is_running(owner.pid, owner.start)
