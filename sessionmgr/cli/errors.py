"""Errors of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessionmgr.errors import SessionmgrError

if TYPE_CHECKING:
    from collections.abc import Sequence


class CommandLineError(SessionmgrError):
    """Base class of errors in command lines and settings."""


class CommandLineInvalid(CommandLineError):
    """Invalid arguments of a command."""


class ConfigurationInvalid(CommandLineError):
    """A setting that is unknown or has an invalid value."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}")
        self.where = where


class NameAmbiguous(CommandLineError, LookupError):
    """A typed name that matches several things; `candidates` describes each of them."""

    def __init__(self, why: str, candidates: Sequence[str], remedy: str) -> None:
        super().__init__("\n".join([f"{why}; {remedy}:", *(f"  {each}" for each in candidates)]))
        self.candidates = tuple(candidates)


class StoreEmpty(CommandLineError):
    """The default store does not exist, since nothing has been run yet."""


class RunNotManaged(CommandLineError):
    """A request for a run that no process owns now."""


class RemoteRequestFailed(CommandLineError):
    """A request that the owning process could not carry out."""
