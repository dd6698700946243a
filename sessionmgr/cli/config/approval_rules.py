"""Approval rules from the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessionmgr.batch import RulesInvalid, read_rules
from sessionmgr.cli.errors import CommandLineInvalid

if TYPE_CHECKING:
    from sessionmgr.adapter import Approve
    from sessionmgr.cli.config.configuration import Configuration


def load_approver(configuration: Configuration) -> Approve | None:
    """Return the approver for the configured file of rules, if any.

    A file of a trusted project is read once: the hashed bytes are the bytes in use.

    Raises:
        CommandLineInvalid: The file is invalid; the error names its source, place and reason.
    """
    path = configuration.approve
    if path is None:
        return None
    try:
        return read_rules(path, sha256=configuration.trusted.get(str(path.resolve())))
    except RulesInvalid as error:
        source = configuration.sources.get("approve", "approve")
        raise CommandLineInvalid(f"{source}: {error}") from error
