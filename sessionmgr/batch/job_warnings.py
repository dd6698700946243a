"""Warnings about valid jobs and settings that may not be intended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessionmgr.batch.denials import NO_RULES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.batch.import_jobs import JobImporter


def collect_warnings(
    reader: JobImporter, directory_warnings: Sequence[str], *, is_answered: bool
) -> tuple[str, ...]:
    """Return the warnings about all imported jobs, including those about shared directories."""
    return (
        *_unused_arguments(reader),
        *reader.overridden_flags.warnings(),
        *directory_warnings,
        *((NO_RULES,) if reader.asks and not is_answered else ()),
    )


def _unused_arguments(reader: JobImporter) -> list[str]:
    """Return warnings about the caller's arguments that had no effect."""
    if not reader.count:
        return ["contains no jobs"]
    return [f"no job's id matches {each!r}" for each in sorted(reader.unmatched_patterns)]
