"""Which jobs of a batch are meant this time, as flags."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


def add_selection_flags(parser: argparse.ArgumentParser) -> None:
    """Add `--limit`, `--only` and `--skip`."""
    parser.add_argument("--limit", metavar="N", type=_count, help="start so many jobs at most")
    parser.add_argument("--only", action="append", metavar="GLOB", help="these jobs, by their id")
    parser.add_argument("--skip", action="append", metavar="GLOB", help="not these jobs")


def _count(text: str) -> int:
    import argparse

    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a number, not {text!r}")
    return int(text)
