"""The router of an app-server's frames: pushes each to the driver of its conversation.

A thread belongs to the conversation that opened it; the threads of agents belong to their caller's
conversation. A frame can arrive before its thread has an owner; it is held until then, in a buffer
of bounded size. The router runs in the connection's reader and never waits. An exception that the
frames of one conversation cause ends that run alone.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeGuard, cast

from sessionmgr.adapter.kit import PeerReply, PeerRequest, read_size
from sessionmgr.wire import RpcErrorResponse, RpcResponse, decode_rpc
from sessionmgr_adapters.codex import frames
from sessionmgr_adapters.codex.decode import decode_frame, frame_thread, read_notices
from sessionmgr_adapters.codex.items import AgentMessageItem, ReasoningItem, item_agents

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from sessionmgr.model import Json
    from sessionmgr.wire import Line
    from sessionmgr_adapters.codex.conversation import CodexConversation
    from sessionmgr_adapters.codex.frames import CodexFrame
    from sessionmgr_adapters.codex.thread_cache import ThreadCache

    Routed: TypeAlias = list[tuple[CodexConversation, CodexFrame]]

_DELTAS: Final = {frames.CodexMessageDelta, frames.CodexReasoningDelta, frames.CodexOutputDelta}
_OUTPUT_NOTICES: Final = {*_DELTAS, frames.ItemStartedNotice, frames.ItemEndedNotice}
_thread: Final = cast("Callable[[frames.Notice], str]", attrgetter("thread_id"))

MAX_HELD_FRAMES: Final = 1000
"""Maximum number of frames that are held for threads without a known owner."""
MAX_EARLY_FRAMES: Final = 1000
"""Maximum number of frames that are held for the first conversation."""


class RoutedConnection(Protocol):
    """The connection, as its router uses it."""

    @property
    def cache(self) -> ThreadCache:
        """The threads that the app-server has loaded."""
        ...

    def call_soon(self, method: str, params: dict[str, Json]) -> None:
        """Send a call whose answer is ignored."""

    def reply(self, reply: PeerReply) -> None:
        """Answer a request of the app-server."""

    def caller(self, answer: RpcResponse | RpcErrorResponse) -> CodexConversation | None:
        """Return the conversation whose call is answered; None if the connection called."""

    def resolve(self, answer: RpcResponse | RpcErrorResponse) -> Routed:
        """Return the frames that an answer is, each with the conversation that called."""
        ...


class FrameRouter:
    """The conversations of one app-server, and the owner of each thread."""

    def __init__(self, connection: RoutedConnection) -> None:
        self.conversations: Final[list[CodexConversation]] = []
        self._connection: Final = connection
        self._owners: Final[dict[str, CodexConversation]] = {}
        """The conversation of each thread."""
        self._unclaimed: Final[dict[str, list[CodexFrame]]] = {}
        """Frames of threads whose owner is not known yet."""
        self._early: Final[list[CodexFrame]] = []

    def take_early(self) -> list[CodexFrame]:
        """Return the frames that arrived before the first conversation was opened."""
        early = list(self._early)
        self._early.clear()
        return early

    def claim(self, thread: str, conversation: CodexConversation) -> list[CodexFrame]:
        """Assign a thread to a conversation, and return the frames that were held for it."""
        self._owners[thread] = conversation
        return self._unclaimed.pop(thread, [])

    def leave(self, conversation: CodexConversation) -> list[str]:
        """Remove a conversation, and return its threads."""
        self.conversations.remove(conversation)
        threads = [name for name, owner in self._owners.items() if owner is conversation]
        for each in threads:
            del self._owners[each]
        if not self._owners:
            self._unclaimed.clear()
        return threads

    # --- frames ----------------------------------------------------------------------------------

    def handle_lines(self, lines: Sequence[Line]) -> None:
        """Push the frames of one read to their drivers."""
        notices = read_notices(lines)
        owner = self._single_owner(notices)
        if owner is not None:
            owner.driver.feed(cast("list[CodexFrame]", notices), read_size(lines))
            return
        reads: defaultdict[CodexConversation, list[CodexFrame]] = defaultdict(list)
        thread, streamed = "", None  # thread and owner of the current streak of deltas
        for line, notice in zip(lines, notices, strict=True):
            if isinstance(notice, frames.CodexDelta) or _is_output(notice):
                if streamed is None or notice.thread_id != thread:
                    thread = notice.thread_id
                    owner = self._owners.get(thread)
                    streamed = None if owner is None else reads[owner]
                if streamed is not None:
                    streamed.append(notice)
                    continue
            for frame in [notice] if notice is not None else map(decode_frame, decode_rpc(line)):
                self._handle_frame(frame, reads)
            streamed = None  # this frame may have changed the owner
        size = read_size(lines)
        for conversation, each in reads.items():
            conversation.driver.feed(each, size // len(reads))

    def _single_owner(self, notices: Sequence[frames.Notice | None]) -> CodexConversation | None:
        """Return the owner of a read that only streams text of one thread, as most reads do."""
        kinds = set(map(type, notices))
        if not (notices and kinds <= _OUTPUT_NOTICES):
            return None
        known = cast("Sequence[frames.Notice]", notices)
        threads = set(map(_thread, known))
        others = [] if kinds <= _DELTAS else [each for each in known if type(each) not in _DELTAS]
        if len(threads) > 1 or not all(map(_is_output, others)):
            return None
        return self._owners.get(threads.pop())

    def _handle_frame(
        self,
        frame: CodexFrame | RpcResponse | RpcErrorResponse,
        reads: defaultdict[CodexConversation, list[CodexFrame]],
    ) -> None:
        if isinstance(frame, RpcResponse | RpcErrorResponse):
            owner = self._connection.caller(frame)
        else:
            owner = self._owners.get(frame_thread(frame))
        with _crash_guard(owner):
            for conversation, each in self._route(frame, owner):
                with _crash_guard(conversation):
                    conversation.note(each)
                    reads[conversation].append(each)

    def _route(
        self, frame: CodexFrame | RpcResponse | RpcErrorResponse, owner: CodexConversation | None
    ) -> Routed:
        """Return the conversations that receive a frame, with the held frames that it releases."""
        match frame:
            case RpcResponse() | RpcErrorResponse():
                return self._connection.resolve(frame)
            case PeerRequest(id=id_) if owner is None:
                self._connection.reply(PeerReply(id_, error="unknown thread"))
                return []
            case _:
                thread = frame_thread(frame)
                self._note(thread, frame)
                return [*self._about(thread, frame), *self._adopted(frame)]

    def _note(self, thread: str, frame: CodexFrame) -> None:
        """Update the state of a thread, whether or not a run uses it."""
        match frame:
            case frames.ThreadClosedNotice():
                self._connection.cache.note_closed(thread)
            case frames.ThreadSettingsNotice(thread_settings=settings):
                self._connection.cache.note_settings(thread, settings)
            case frames.TurnStartedNotice(turn=turn) if self._connection.cache.is_unloading(thread):
                about = {"threadId": thread, "turnId": turn.id}
                self._connection.call_soon("turn/interrupt", {**about})
            case _:
                pass

    def _about(self, thread: str, frame: CodexFrame) -> Routed:
        owner = self._owners.get(thread)
        if owner is not None:
            if isinstance(frame, frames.ThreadClosedNotice) and thread != owner.thread:
                self._forget(thread)
            return [(owner, frame)]
        if thread:
            if self.conversations and thread not in self._connection.cache:
                self._hold(thread, frame)
            return []
        if not self.conversations:
            self._early.append(frame)
            del self._early[:-MAX_EARLY_FRAMES]
        return [(each, frame) for each in self.conversations]

    def _hold(self, thread: str, frame: CodexFrame) -> None:
        """Hold a frame of a thread whose owner is not known yet."""
        self._unclaimed.setdefault(thread, []).append(frame)
        while sum(map(len, self._unclaimed.values())) > MAX_HELD_FRAMES:
            del self._unclaimed[next(iter(self._unclaimed))]

    def _forget(self, thread: str) -> list[CodexFrame]:
        """Remove a thread, and return the frames that were held for it."""
        self._owners.pop(thread, None)
        return self._unclaimed.pop(thread, [])

    def _adopted(self, frame: CodexFrame) -> Routed:
        """Assign agents' threads to their caller's conversation; return the held frames."""
        caller, agents = called_threads(frame)
        conversation = self._owners.get(caller)
        held: Routed = []
        for agent in agents:
            if agent in self._owners or agent in self._connection.cache:
                continue
            if conversation is not None:
                held += [(conversation, each) for each in self.claim(agent, conversation)]
            elif self._connection.cache.is_unloading(caller):
                held_back = self._forget(agent)
                self._connection.cache.unload(agent, "")
                for each in held_back:
                    if isinstance(each, frames.TurnStartedNotice):
                        self._note(agent, each)
        return held


def _is_output(notice: frames.Notice | None) -> TypeGuard[frames.Notice]:
    """Whether a notice starts or ends output of the model, which concerns its own run alone."""
    return isinstance(notice, frames.ItemStartedNotice | frames.ItemEndedNotice) and isinstance(
        notice.item, AgentMessageItem | ReasoningItem
    )


@contextmanager
def _crash_guard(owner: CodexConversation | None) -> Generator[None]:
    """End the run of a known conversation with the exception of the block."""
    try:
        yield
    except Exception as error:
        if owner is None:
            raise
        owner.driver.crash(error)


def called_threads(frame: CodexFrame) -> tuple[str, list[str]]:
    """Return the thread of the caller, and the threads of the agents that a frame names."""
    match frame:
        case frames.ThreadStartedNotice(
            thread=frames.ThreadRef(id=thread, parent_thread_id=str(caller))
        ):
            return caller, [thread]
        case (
            frames.ItemStartedNotice(thread_id=caller, item=item)
            | frames.ItemEndedNotice(thread_id=caller, item=item)
        ):
            return caller, item_agents(item)
        case _:
            return "", []
