"""Ownership of a batch's directory: it belongs to the first jobs file that was run there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from sessionmgr.batch.errors import OutDirectoryTaken

if TYPE_CHECKING:
    from sessionmgr.batch.jobs_file import JobSource
    from sessionmgr.batch.ledger import Ledger

_NOTE: Final = "source"
_NO_FILE: Final = "jobs"
"""The owner that older versions recorded for jobs from a program."""


class OwnershipClaim(NamedTuple):
    """A jobs file that may use a directory."""

    owner: str
    before: str | None
    """The former owner, if `force` replaces it."""

    def record(self, ledger: Ledger) -> None:
        """Record the owner, in the step that enters its jobs."""
        ledger.metadata(_NOTE, self.owner)


def claim_directory(
    ledger: Ledger, out: str | Path, source: JobSource, *, force: bool
) -> OwnershipClaim | None:
    """Check a directory's owner; it changes only when `record` is called.

    Jobs from a program come from no file: any directory is fine for them.

    Raises:
        JobsInvalid: The file does not look like a jobs file at all.
        OutDirectoryTaken: The directory belongs to another file; `force` takes it over.
    """
    if source.path is None:
        return None
    now, before = _recorded_path(source.path, Path(out)), ledger.metadata(_NOTE)
    is_ours = before in (None, _NO_FILE, now, str(source.path)) or _is_same_file(before, now)
    if not is_ours and not force:
        source.require_jobs_file()
        raise OutDirectoryTaken(str(out), before or "", str(source))
    return OwnershipClaim(now, None if is_ours else before)


def _recorded_path(path: Path, out: Path) -> str:
    """Return a file's entry; a file in the directory itself moves with it."""
    home = out.resolve()
    return str(path.relative_to(home)) if path.is_relative_to(home) else str(path)


def _is_same_file(before: str | None, now: str) -> bool:
    try:
        return Path(before or "").samefile(now)
    except OSError:
        return False  # the other file is gone
