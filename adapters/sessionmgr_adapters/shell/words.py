"""Parses a prompt of this adapter into the words of an argv or of a script."""

from sessionmgr.adapter.kit.command_line import (
    NotPlainError as NotPlainError,
    Word as Word,
    argv_of as argv_of,
    split as split,
)
