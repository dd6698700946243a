"""The approval rules that the settings name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessionmgr.batch import read_rules

if TYPE_CHECKING:
    from sessionmgr.cli.configuration import Configuration
    from sessionmgr.provider import Approve


def rules_of(configuration: Configuration) -> Approve | None:
    """Return what answers questions, if a file of rules is set.

    A file of a trusted project is read as it was trusted: what was hashed is what is used.

    Raises:
        RulesInvalid: It holds no rules; it says where and why.
    """
    path = configuration.approve
    if path is None:
        return None
    return read_rules(path, sha256=configuration.trusted.get(str(path.resolve())))
