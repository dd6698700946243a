"""Which jobs file a batch's directory belongs to: the first that was run there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from sessionmgr.errors import OutDirectoryTaken

if TYPE_CHECKING:
    from sessionmgr.batch.jobs_file import Source
    from sessionmgr.batch.ledger import Ledger

_NOTE: Final = "source"
_NO_FILE: Final = "jobs"
"""What older versions noted of jobs that came from a program."""


def claim(ledger: Ledger, out: str | Path, source: Source, *, force: bool) -> str | None:
    """Note whose directory it is, or make sure that it is this file's; return who lost it by force.

    Jobs that a program hands over come from no file: they are at home in any directory.

    Raises:
        JobsInvalid: The file that would be at home elsewhere is no jobs file at all.
        OutDirectoryTaken: It belongs to another file; with `force` it is taken over.
    """
    if source.path is None:
        return None
    now, before = _place(source.path, Path(out)), ledger.note(_NOTE)
    is_ours = before in (None, _NO_FILE, now, str(source.path)) or _is_same_file(before, now)
    if not is_ours and not force:
        source.require_jobs_file()
        raise OutDirectoryTaken(str(out), before or "", str(source))
    ledger.note(_NOTE, now)
    return None if is_ours else before


def _place(path: Path, out: Path) -> str:
    """Return what to note of a file; one that lies in the directory itself moves with it."""
    home = out.resolve()
    return str(path.relative_to(home)) if path.is_relative_to(home) else str(path)


def _is_same_file(before: str | None, now: str) -> bool:
    try:
        return Path(before or "").samefile(now)
    except OSError:
        return False  # the other is gone
