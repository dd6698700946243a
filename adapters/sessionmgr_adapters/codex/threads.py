"""Whose threads are, and what has come of those of which that is not known yet.

A thread that an agent works in belongs to the conversation of who has called it. Codex may speak of
it before it tells that it was called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessionmgr_adapters.codex.frames import ItemEnded, ItemStarted, ThreadRef, ThreadStarted
from sessionmgr_adapters.codex.items import agents_in

if TYPE_CHECKING:
    from sessionmgr.wire import NoFrame
    from sessionmgr_adapters.codex.conversation import CodexConversation
    from sessionmgr_adapters.codex.frames import Frame, Notice

HELD: Final = 1000
"""Frames that are kept of threads of which it is not known yet whose they are."""


class Threads:
    """The threads of conversations, their agents' as well."""

    def __init__(self) -> None:
        self._owners: Final[dict[str, CodexConversation]] = {}
        self._unclaimed: Final[dict[str, list[Frame]]] = {}

    def __contains__(self, thread: str) -> bool:
        """Whether it is known whose a thread is."""
        return thread in self._owners

    def owner(self, thread: str | None) -> CodexConversation | None:
        """Return whose a thread is."""
        return self._owners.get(thread or "")

    def claim(self, thread: str, conversation: CodexConversation) -> list[Frame]:
        """Have a thread belong to a conversation; return what has come of it before."""
        self._owners[thread] = conversation
        return self._unclaimed.pop(thread, [])

    def hold(self, thread: str, frame: Frame) -> None:
        """Keep what may be about a thread of which is told next whose it is."""
        self._unclaimed.setdefault(thread, []).append(frame)
        while sum(map(len, self._unclaimed.values())) > HELD:
            del self._unclaimed[next(iter(self._unclaimed))]

    def forget(self, thread: str) -> list[Frame]:
        """Have a thread belong to nobody; return what is kept of it."""
        self._owners.pop(thread, None)
        return self._unclaimed.pop(thread, [])

    def leave(self, conversation: CodexConversation) -> list[str]:
        """Have nothing belong to a conversation any more; return its threads."""
        threads = [name for name, owner in self._owners.items() if owner is conversation]
        for each in threads:
            del self._owners[each]
        if not self._owners:
            self._unclaimed.clear()
        return threads


def called_in(frame: Notice | NoFrame) -> tuple[str, list[str]]:
    """Return the threads of agents that a frame tells of, after the one that has called them."""
    match frame:
        case ThreadStarted(thread=ThreadRef(id=thread, parent_thread_id=str(caller))):
            return caller, [thread]
        case ItemStarted(thread_id=caller, item=item) | ItemEnded(thread_id=caller, item=item):
            return caller, agents_in(item)
        case _:
            return "", []
