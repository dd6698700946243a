"""Directories of rehearsals, which keep a scripted model's output apart from real results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessionmgr.batch import contains_batch
from sessionmgr.cli.errors import CommandLineInvalid

if TYPE_CHECKING:
    from pathlib import Path

MARK: Final = "rehearsal"
"""The marker file in such a directory."""


def mark_rehearsal(out: Path) -> None:
    """Mark a directory as that of a rehearsal.

    Raises:
        CommandLineInvalid: It contains a real batch.
        OSError: The system refuses to write.
    """
    if contains_batch(out) and not (out / MARK).exists():
        why = "it contains a real batch, whose results a rehearsal would replace; name another"
        raise CommandLineInvalid(f"--out {out}: {why}")
    out.mkdir(parents=True, exist_ok=True)
    (out / MARK).write_text("The results in this directory come from a scripted model.\n")


def refuse_rehearsal(out: Path) -> None:
    """Refuse a directory that contains a rehearsal.

    Raises:
        CommandLineInvalid: It contains one.
    """
    if (out / MARK).exists():
        why = "it contains a rehearsal, with results from a scripted model"
        raise CommandLineInvalid(f"--out {out}: {why}; name another, or remove it")
