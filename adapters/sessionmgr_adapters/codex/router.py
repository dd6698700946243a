"""Lines of an app-server to frames, pushed to the drivers of the conversations that they are about.

Agents that a thread has called have threads of their own, which belong to the same conversation.
All of it runs in the connection's reader: nothing here waits.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from sessionmgr.adapter.kit.json_rpc_caller import Reply
from sessionmgr.adapter.kit.stdio_connection import size_of
from sessionmgr.wire import ErrorResponse, NoFrame, Notification, Request, Response, Untyped
from sessionmgr.wire.json_rpc import decode
from sessionmgr_adapters.codex.decode import asking_of, notice_of, read_notices, thread_of
from sessionmgr_adapters.codex.frames import (
    Delta,
    Frame,
    ItemEnded,
    ItemStarted,
    SettingsChanged,
    ThreadClosed,
    ThreadRef,
    ThreadStarted,
    TurnStarted,
)
from sessionmgr_adapters.codex.items import agents_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.wire import Line, NoFrame
    from sessionmgr.wire.json_rpc import Message
    from sessionmgr_adapters.codex.frames import Frame, Notice
    from sessionmgr_adapters.codex.sdk import CodexConnection, CodexConversation

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


EARLY: Final = 1000
"""Frames that are kept for whoever comes first."""


class Router:
    """Whose the frames of one app-server are."""

    def __init__(self, connection: CodexConnection) -> None:
        self.conversations: Final[list[CodexConversation]] = []
        self.threads: Final = Threads()
        self._connection: Final = connection
        self._early: Final[list[Frame]] = []

    def take_early(self) -> list[Frame]:
        """Return what has come before there was any conversation."""
        early = list(self._early)
        self._early.clear()
        return early

    def take(self, lines: Sequence[Line]) -> None:
        """Push the frames of one read into the drivers that they are for."""
        reads: defaultdict[CodexConversation, list[Frame]] = defaultdict(list)
        thread, streamed = "", None  # of the notices that stream one after the other
        for line, notice in zip(lines, read_notices(lines), strict=True):
            if isinstance(notice, Delta):
                if streamed is None or notice.thread_id != thread:
                    thread = notice.thread_id
                    owner = self.threads.owner(thread)
                    streamed = None if owner is None else reads[owner]
                if streamed is not None:
                    streamed.append(notice)
                    continue
            for conversation, frame in self._heard(line, notice):
                conversation.note(frame)
                reads[conversation].append(frame)
            streamed = None  # the thread may be another's now
        size = size_of(lines)
        for conversation, frames in reads.items():
            conversation.driver.feed(frames, size // len(reads))

    def _heard(self, line: Line, notice: Notice | None) -> list[tuple[CodexConversation, Frame]]:
        if notice is not None:
            return self._told(notice)
        return [each for message in decode(line) for each in self._routed(message)]

    def _routed(self, message: Message | NoFrame) -> list[tuple[CodexConversation, Frame]]:
        match message:
            case Response() | ErrorResponse():
                return self._connection.settled(message)
            case Request():
                asking = asking_of(message)
                conversation = self.threads.owner(thread_of(asking.params))
                if conversation is None:
                    self._connection.reply(
                        Reply(asking.id, error="nobody here knows of that thread")
                    )
                    return []
                return [(conversation, asking)]
            case Notification():
                return self._told(notice_of(message))
            case _:
                return self._about("", message)

    def _told(self, frame: Notice | Untyped) -> list[tuple[CodexConversation, Frame]]:
        if isinstance(frame, Untyped):
            thread = _thread_in(frame)
        elif isinstance(frame, ThreadStarted):
            thread = frame.thread.id
        else:
            thread = frame.thread_id
        self._note(thread, frame)
        return [*self._about(thread, frame), *self._adopted(frame)]

    def _note(self, thread: str, frame: Frame) -> None:
        """Take note of what is about a thread and not about a run."""
        match frame:
            case ThreadClosed():
                self._connection.cache.note_closed(thread)
            case SettingsChanged():
                self._connection.cache.note_settings(thread, frame)
            case TurnStarted(turn=turn) if self._connection.cache.is_unwanted(thread):
                self._connection.call_soon(
                    "turn/interrupt", {"threadId": thread, "turnId": turn.id}
                )
            case _:
                pass

    def _adopted(self, frame: Notice | Untyped) -> list[tuple[CodexConversation, Frame]]:
        """Have the threads of agents belong to who has called them; return what came of them."""
        caller, agents = called_in(frame)
        conversation = self.threads.owner(caller)
        held: list[tuple[CodexConversation, Frame]] = []
        for agent in agents:
            if agent in self.threads or agent in self._connection.cache:
                continue
            if conversation is not None:
                held += [(conversation, each) for each in self.threads.claim(agent, conversation)]
            elif self._connection.cache.is_unwanted(caller):
                held_back = self.threads.forget(agent)
                self._connection.cache.give_back(agent, "")
                for each in held_back:
                    if isinstance(each, TurnStarted):
                        self._note(agent, each)
        return held

    def _about(self, thread: str, frame: Frame) -> list[tuple[CodexConversation, Frame]]:
        owner = self.threads.owner(thread)
        if owner is not None:
            if isinstance(frame, ThreadClosed) and thread != owner.thread:
                self.threads.forget(thread)
            return [(owner, frame)]
        if thread:
            if self.conversations and thread not in self._connection.cache:
                self.threads.hold(thread, frame)
            return []
        if not self.conversations:
            self._early.append(frame)
            del self._early[:-EARLY]
        return [(each, frame) for each in self.conversations]


def _thread_in(frame: Untyped) -> str:
    match frame.value:
        case {"params": params}:
            return thread_of(params) or ""
        case _:
            return ""
