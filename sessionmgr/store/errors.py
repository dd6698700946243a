"""Errors of the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessionmgr.errors import SessionmgrError

if TYPE_CHECKING:
    from collections.abc import Sequence


class StoreError(SessionmgrError):
    """Base class of errors of the store."""


class StoreUnusable(StoreError):
    """The file or its disk is unusable; nothing was overwritten."""

    what = "cannot be used"
    remedy = "check the file and its disk"

    def __init__(self, path: str, why: object = "") -> None:
        super().__init__(f"{path} {self.what}{f' ({why})' if why else ''}; {self.remedy}")
        self.path = path
        self.why = str(why)


class StorePathInvalid(StoreUnusable):
    """There can be no store at this path."""

    what = "cannot hold a store"
    remedy = "choose a file in a directory that exists (--store PATH)"


class NotAStore(StoreUnusable):
    """The file exists and is not a store."""

    what = "is not a session store"
    remedy = "it was not changed; choose another file (--store PATH)"


class StoreTooNew(StoreUnusable):
    """A newer version of this library wrote the file."""

    what = "was written by a newer version"
    remedy = "upgrade sessionmgr, or choose another file (--store PATH)"


class StoreReadOnly(StoreUnusable):
    """This user may not write the file or its directory."""

    what = "is not writable"
    remedy = "a store needs write permission for its file and for the directory of the file"


class StoreDamaged(StoreUnusable):
    """The file is corrupt."""

    what = "is damaged"
    remedy = "it was not changed; restore a copy, or move it away to start with an empty store"


class StoreFull(StoreUnusable):
    """The disk is full; what was acknowledged is stored, the rest is not."""

    what = "has no room to grow"
    remedy = (
        "free space on its disk, or raise the limit or quota, then try again (sessionmgr prune "
        "shrinks the file, but needs a few MB of room for its log)"
    )


class StoreBusy(StoreUnusable):
    """Another process held the write lock for longer than the time limit."""

    what = "is locked by another process"
    remedy = "try again, or find the process that has it open (lsof, fuser)"


class StoreFailed(StoreUnusable):
    """The system refused an operation for a reason without an error class of its own."""

    what = "could not be read or written"


class StoreTimeout(StoreUnusable):
    """The store did not answer within the time limit."""

    what = "does not answer"
    remedy = "check its disk and the processes that use it"


class StoreClosed(StoreError):
    """The store is closed."""

    def __init__(self, where: str) -> None:
        super().__init__(f"{where} is closed: use it inside its `async with` block")


class AppendRefused(StoreError):
    """The append was refused; no part of it was stored."""

    def __init__(self, session_id: str, why: str) -> None:
        super().__init__(f"session {session_id}: append refused: {why}")
        self.session_id = session_id


class AppendInvalid(AppendRefused, ValueError):
    """The append is invalid in every store."""


class StaleFence(AppendRefused):
    """Another recorder has acquired the session since; this one must stop."""

    def __init__(self, session_id: str, fence: int, current: int) -> None:
        super().__init__(session_id, f"its fence {fence} is stale; the present one is {current}")
        self.fence = fence
        self.current = current


class NumberTaken(AppendRefused):
    """Another batch has this number."""

    def __init__(self, session_id: str, first: int, last: int) -> None:
        super().__init__(
            session_id, f"another batch has number {first}; the last stored number is {last}"
        )
        self.first = first
        self.last = last


class NumberGap(AppendRefused):
    """Numbers before the batch's first are missing."""

    def __init__(self, session_id: str, first: int, last: int) -> None:
        super().__init__(
            session_id, f"it begins with number {first}; the last stored number is {last}"
        )
        self.first = first
        self.last = last


class AlreadyEnded(AppendRefused):
    """The run has its terminal event; a second one or another status is refused."""

    def __init__(self, session_id: str, run_id: str, status: str) -> None:
        super().__init__(session_id, f"run {run_id} has already ended: {status}")
        self.run_id = run_id
        self.status = status


class UnknownId(StoreError, LookupError):
    """The store contains no such id."""

    def __init__(self, kind: str, id: str) -> None:
        super().__init__(f"no {kind} {id!r} is stored")
        self.kind = kind
        self.id = id


class AmbiguousId(StoreError, LookupError):
    """Several ids begin with this prefix; `candidates` holds some of them."""

    def __init__(self, prefix: str, candidates: Sequence[str]) -> None:
        super().__init__(f"{prefix!r} is ambiguous: {', '.join(candidates)}")
        self.prefix = prefix
        self.candidates = tuple(candidates)


class IdTaken(StoreError):
    """The id already belongs to something else."""

    def __init__(self, kind: str, id: str) -> None:
        super().__init__(f"another {kind} has the id {id!r}")
        self.kind = kind
        self.id = id


class LeaseHeld(StoreError):
    """Another owner holds the lease, and is not known to be gone."""

    def __init__(self, name: str, holder: object, fence: int, expires: int) -> None:
        super().__init__(f"the lease {name!r} is held by {holder} until {expires}")
        self.name = name
        self.holder = holder
        self.fence = fence
        self.expires = expires


class LeaseLost(StoreError):
    """The lease was released, or another owner has acquired it."""

    def __init__(self, name: str, fence: int, current: int) -> None:
        super().__init__(f"the lease {name!r} is lost: fence {fence}, the present one is {current}")
        self.name = name
        self.fence = fence
        self.current = current
