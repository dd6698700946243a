"""Directories of rehearsals: what a played model has said is never taken for results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessionmgr.batch import is_begun
from sessionmgr.errors import CommandLineInvalid

if TYPE_CHECKING:
    from pathlib import Path

MARK: Final = "rehearsal"
"""The file that stands in such a directory."""


def claim_for_rehearsal(out: Path) -> None:
    """Mark a directory as that of a rehearsal.

    Raises:
        CommandLineInvalid: There is a real batch in it.
        OSError: The system refuses.
    """
    if is_begun(out) and not (out / MARK).exists():
        why = "a real batch is in it, and a rehearsal would replace its results; name another"
        raise CommandLineInvalid(f"--out {out}: {why}")
    out.mkdir(parents=True, exist_ok=True)
    (out / MARK).write_text("The results in this directory are those of a played model.\n")


def refuse_rehearsal(out: Path) -> None:
    """Make sure that a directory is not that of a rehearsal.

    Raises:
        CommandLineInvalid: It is.
    """
    if (out / MARK).exists():
        why = "it holds a rehearsal, whose results are those of a played model"
        raise CommandLineInvalid(f"--out {out}: {why}; name another, or remove it")
