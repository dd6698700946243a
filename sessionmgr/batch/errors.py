"""Errors of batches."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from sessionmgr.adapter import SessionError

if TYPE_CHECKING:
    from collections.abc import Sequence


class BatchError(SessionError):
    """Base class of the errors of batches."""


class JobsInvalid(BatchError, ValueError):
    """The jobs or their defaults contain mistakes; the batch started nothing."""

    def __init__(self, problems: Sequence[str], unread: int = 0) -> None:
        more = [f"and {unread} more"] if unread else []
        super().__init__("\n".join([*problems, *more]))
        self.problems = tuple(problems)


class RulesInvalid(BatchError, ValueError):
    """A file of approval rules is invalid."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}")
        self.where = where
        self.why = why


class BatchBusy(BatchError):
    """Another process runs this batch now."""

    def __init__(self, directory: str, holder: str) -> None:
        super().__init__(f"{directory} is in use by {holder}; wait until it ends, or use --out DIR")
        self.directory = directory
        self.holder = holder


class OutDirectoryTaken(BatchError):
    """The output directory belongs to the batch of another jobs file."""

    def __init__(self, directory: str, holder: str, jobs: str) -> None:
        super().__init__(
            f"{directory} already holds the batch of {holder}. Use --out DIR to keep them apart;"
            f" if {jobs} is that file, moved or renamed, --force takes the directory over"
        )
        self.directory = directory
        self.holder = holder


class StoreMismatch(BatchError):
    """The batch has attempts to continue, and the store in use has no record of them."""

    def __init__(self, directory: str, jobs: int, store: str | None) -> None:
        one = jobs == 1
        need, them = ("1 job needs", "it") if one else (f"{jobs} jobs need", "them")
        earlier = "the store of the earlier run" if store is None else store
        super().__init__(
            f"{directory}: {need} to continue, but the store in use has no record of {them}."
            f" Run the batch with {earlier} (--store), or start {them} over, which may repeat tool"
            " calls (--retry-from fresh)"
        )
        self.directory = directory
        self.jobs = jobs
        self.store = store


def _remedy(why: str) -> str:
    """Return the remedy for a ledger error whose reason does not contain it."""
    if "not a database" in why or "malformed" in why:
        return "; restore a copy of it, or run the jobs anew in another directory (--out DIR)"
    if "full" in why or os.strerror(errno.ENOSPC) in why:
        return "; free some space, then run the same command again"
    return ""


class LedgerUnusable(BatchError):
    """The batch cannot read or write its ledger."""

    def __init__(self, path: str, why: object) -> None:
        super().__init__(f"cannot use {path} as the ledger of a batch: {why}{_remedy(str(why))}")
        self.path = path
        self.why = str(why)


class OutDirectoryUnusable(LedgerUnusable):
    """A batch's directory cannot be created or written."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.args = (
            f"cannot use the output directory '{path}': {why}; choose another one (--out DIR)",
        )


class ResultsUnwritable(BatchError):
    """The batch cannot write its results or its summary; the ledger contains them."""

    def __init__(self, path: object, why: object) -> None:
        super().__init__(
            f"cannot write {path}: {why}; the ledger contains all completed work, and the next run"
            " writes the file again"
        )
        self.path = str(path)
        self.why = str(why)


class HostLost(BatchError):
    """The connection to the process that runs the jobs was lost."""

    def __init__(self, why: str) -> None:
        super().__init__(f"lost the process that runs the jobs: {why}")
        self.why = why


class BatchDown(BatchError):
    """The batch stopped because of an internal error; `__cause__` is that error."""

    def __init__(self, why: object) -> None:
        super().__init__(f"the batch stopped: {why}")
