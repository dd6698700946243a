"""Flags that select jobs of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


def add_selection_flags(parser: argparse.ArgumentParser) -> None:
    """Add `--limit`, `--only` and `--skip`."""
    parser.add_argument(
        "--limit", metavar="N", type=_count, help="start at most N jobs (default: all)"
    )
    parser.add_argument(
        "--only",
        action="append",
        metavar="GLOB",
        help="run only the jobs whose id matches; may be repeated (default: all)",
    )
    parser.add_argument(
        "--skip",
        action="append",
        metavar="GLOB",
        help="skip the jobs whose id matches; may be repeated (default: none)",
    )


def _count(text: str) -> int:
    import argparse

    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expected a number, 1 or more, got {text!r}")
    return int(text)
