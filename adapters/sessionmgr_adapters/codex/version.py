"""Which version a Codex is, and whether we can talk to it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sessionmgr.adapter.kit.version import outdated

if TYPE_CHECKING:
    from sessionmgr.model import Failure

OLDEST: Final = (0, 163, 0)
_VERSION: Final = re.compile(r"/(\d+)\.(\d+)\.(\d+)")


def version_in(user_agent: str) -> str | None:
    """Return the version that an app-server names when it is greeted."""
    found = _VERSION.search(user_agent)
    return None if found is None else ".".join(found.groups())


def too_old(version: str | None) -> Failure | None:
    """Return the failure that a version is which we cannot talk to."""
    return outdated("Codex", version, OLDEST)
