"""Errors of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessionmgr.errors import SessionmgrError

if TYPE_CHECKING:
    from collections.abc import Sequence


class CommandLineError(SessionmgrError):
    """Something about what a user has typed, or written into a file of settings."""


class CommandLineInvalid(CommandLineError):
    """This is not how the command is used."""


class ConfigurationInvalid(CommandLineError):
    """A setting is unknown, or has a value that it cannot have."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}")
        self.where = where


class NameAmbiguous(CommandLineError, LookupError):
    """A name that a user has typed matches several things; `candidates` describes each of them."""

    def __init__(self, why: str, candidates: Sequence[str], remedy: str) -> None:
        super().__init__("\n".join([f"{why}; {remedy}:", *(f"  {each}" for each in candidates)]))
        self.candidates = tuple(candidates)


class StoreEmpty(CommandLineError):
    """Nothing has been run yet, and so nothing is stored."""


class RunNotManaged(CommandLineError):
    """An order was for a run that no program looks after now."""


class RemoteRequestFailed(CommandLineError):
    """Whoever looks after the run has answered, and could not do it."""
