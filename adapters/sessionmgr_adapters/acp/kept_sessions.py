"""Sessions that stay open in an agent's process between the runs of a session.

The next run continues such a session at once, if it leases the same process and asks for the same
directories, servers and system prompt. Otherwise the session is closed, and loaded again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.adapter import Conversation
from sessionmgr_adapters.acp.frames import SessionOpened
from sessionmgr_adapters.acp.updates import AcpUsage

if TYPE_CHECKING:
    from collections.abc import Hashable

    from sessionmgr_adapters.acp.sdk import AcpOutgoing

MAX_KEPT: Final = 256


class KeptSession(msgspec.Struct, frozen=True, eq=False):
    """A session that stays open: where, with which terms, and its settings."""

    connection: object
    conversation: Conversation[AcpOutgoing]
    terms: Hashable
    opened: SessionOpened
    mode: str | None = None
    first_mode: str | None = None
    cost: float | None = None
    used: AcpUsage = AcpUsage()


class KeptSessions:
    """The kept sessions of one provider, by their ids."""

    def __init__(self) -> None:
        self._kept: Final[dict[str, KeptSession]] = {}

    def keep(self, session: str, kept: KeptSession) -> None:
        """Keep the session of a run that has ended; the oldest one is closed if there are many."""
        self._kept[session] = kept
        while len(self._kept) > MAX_KEPT:
            self.release(next(iter(self._kept)))

    def take(self, session: str, connection: object) -> KeptSession | None:
        """Return a session that is open in this process; close one that is open in another."""
        kept = self._kept.pop(session, None)
        if kept is not None and kept.connection is not connection:
            kept.conversation.close()
            return None
        return kept

    def release(self, session: str) -> None:
        """Close a session."""
        kept = self._kept.pop(session, None)
        if kept is not None:
            kept.conversation.close()
