"""The connection to a Codex app-server: one child, and many threads on it, each a conversation.

It is the seam that a mock takes the place of. What a conversation calls is numbered anew on the
wire, and what comes is given to the conversation whose thread it is about; agents that a thread
has called have threads of their own, which belong to the same conversation. No more calls are open
at once than the server is known to answer.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import msgspec
import trio

from sessionmgr.adapter.kit.json_rpc_peer import FULL, JsonRpcPeer
from sessionmgr.adapter.kit.stdio_child import ChildTalk
from sessionmgr.model import encode_json
from sessionmgr.process.stragglers import kill_stragglers
from sessionmgr.wire import (
    ErrorResponse,
    NoFrame,
    Notification,
    Request,
    Response,
    Untyped,
)
from sessionmgr.wire.json_rpc import decode
from sessionmgr_adapters.codex.calling import OVERLOADED
from sessionmgr_adapters.codex.conversation import CodexConversation
from sessionmgr_adapters.codex.decode import asking_of, decoded, notice_of, read_notice, thread_of
from sessionmgr_adapters.codex.frames import (
    Answer,
    Delta,
    Frame,
    Hello,
    Refusal,
    SettingsChanged,
    ThreadClosed,
    ThreadRef,
    ThreadStarted,
    TurnStarted,
)
from sessionmgr_adapters.codex.initialize import hello_of, introduced
from sessionmgr_adapters.codex.launch import OPENING
from sessionmgr_adapters.codex.outgoing import Call, Reply
from sessionmgr_adapters.codex.thread_cache import Stock
from sessionmgr_adapters.codex.threads import Threads, called_in

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from sessionmgr.adapter.connections import ConnectionSpec, Driver
    from sessionmgr.model import Json
    from sessionmgr.process import Tail
    from sessionmgr.process.facts import ExitFacts
    from sessionmgr.process.launcher import ChildTree
    from sessionmgr.wire import Id, Line
    from sessionmgr.wire.json_rpc import Message
    from sessionmgr_adapters.codex.frames import Notice

EARLY: Final = 1000
"""Frames that are kept for whoever comes first."""
THREAD_VARIABLE: Final = "CODEX_THREAD_ID"
"""Where commands find whose they are."""
_ABOUT_US: Final[dict[str, Json]] = {
    "clientInfo": {"name": "sessionmgr", "title": "sessionmgr", "version": "1"},
    "capabilities": {"experimentalApi": True},
}
_BEGINNING: Final = OPENING | {"turn/start"}
_NO_SUCH_METHOD: Final = -32601


@asynccontextmanager
async def connect(spec: ConnectionSpec) -> AsyncGenerator[CodexConnection, None]:
    """Start an app-server, and own it for the length of the block.

    Raises:
        ProcessError: It could not be started.
    """
    connection = CodexConnection()
    tree = await spec.launcher.spawn(spec.command)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.run, tree)
        nursery.start_soon(connection.live)
        try:
            yield connection
        finally:
            with trio.CancelScope(shield=True):
                await connection.talk.part()
            nursery.cancel_scope.cancel()


class _Theirs(msgspec.Struct, frozen=True):
    """A call of a conversation's."""

    conversation: CodexConversation
    call: Call


class CodexConnection:
    """One app-server."""

    def __init__(self) -> None:
        self.talk: Final = ChildTalk(self._take, room=self._room, over=self._is_over)
        self._requests: Final = JsonRpcPeer[_Theirs](self.talk.write, version=False)
        self._calls: Final[dict[Id, _Theirs]] = {}
        self._conversations: Final[list[CodexConversation]] = []
        self._threads: Final = Threads()
        self._stock: Final = Stock(self._requests.ask, self.clear_away)
        self._early: Final[list[Frame]] = []
        self._hello: Hello | None = None
        self._greeted: Final = trio.Event()
        self._nursery: trio.Nursery | None = None
        self._tree: ChildTree | None = None

    @property
    def facts(self) -> ExitFacts | None:
        """How it ended, when it has."""
        return self.talk.facts

    @property
    def tail(self) -> Tail:
        """The last of what it complained."""
        return self.talk.tail

    async def wait_closed(self) -> None:
        """Wait until it is of no use any more."""
        await self.talk.wait_closed()

    async def run(self, tree: ChildTree) -> None:
        """Talk with it until it is gone, whoever is cancelled."""
        self._tree = tree
        await self.talk.run(tree)

    async def live(self) -> None:
        """Greet it, and give threads back, until it is gone."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            self._stock.open(nursery)
            await self._greet()
            await trio.sleep_forever()

    async def _greet(self) -> None:
        """Greet it; runs need not wait until it says who pays, which takes a while."""
        hello = hello_of(await self._requests.ask("initialize", _ABOUT_US))
        if hello.refusal is None:
            self._requests.say(Notification("initialized"))
            self._introduce(hello)
            account = await self._requests.ask("account/read", {"refreshToken": False})
            hello = introduced(hello, account)
        self._introduce(hello)
        self._greeted.set()

    def _introduce(self, hello: Hello) -> None:
        self._hello = hello
        for each in list(self._conversations):
            each.driver.feed([hello], 0)

    async def open(self, spec: object, driver: Driver[Frame]) -> CodexConversation:
        """Begin to talk about a thread: which one is told by what is called."""
        await trio.lowlevel.checkpoint()
        conversation = CodexConversation(self, driver)
        self._conversations.append(conversation)
        early = [*self._early, *([] if self._hello is None else [self._hello])]
        self._early.clear()
        if early:
            driver.feed(early, 0)
        if self.talk.has_ended:
            driver.end()
        return conversation

    # --- what is said ----------------------------------------------------------------------------

    async def call(self, conversation: CodexConversation, call: Call) -> None:
        """Call something for a conversation, once there is room; its answer is a frame."""
        if call.method == "turn/start":
            await self._greeted.wait()  # a run tells who pays as soon as its turn has begun
        if self._answered_from_memory(conversation, call):
            return
        if call.method == "thread/resume":
            await self.release(str(call.params.get("threadId")))
        await self._requests.slot()
        if conversation not in self._conversations:
            self._requests.give_back()
            return
        theirs = _Theirs(conversation, call)
        id_ = self._requests.send(call.method, call.params, theirs)
        if id_ is None:
            refusal = Refusal(OVERLOADED, FULL)
            conversation.driver.feed([Answer(call.id, call.method, refusal=refusal)], 0)
        else:
            self._calls[id_] = theirs

    def _answered_from_memory(self, conversation: CodexConversation, call: Call) -> bool:
        """Go on with a thread that is loaded still, if it is as it is wanted."""
        if not self._stock.keeps_for(call):
            return False
        thread = str(call.params["threadId"])
        conversation.thread = thread
        self._threads.claim(thread, conversation)
        opened = self._stock.take(thread)
        conversation.driver.feed([Answer(call.id, call.method, opened, is_remembered=True)], 0)
        return True

    async def release(self, thread: str) -> None:
        """Keep a thread no longer, and wait until somebody else can have it."""
        await self._stock.release(thread)

    def drop(self, thread: str) -> None:
        """Keep a thread no longer, and do not wait for that."""
        self._stock.drop(thread)

    def call_soon(self, method: str, params: dict[str, Json]) -> None:
        """Call something whose answer makes no difference."""
        if self._nursery is not None and not self.talk.has_ended:
            self._nursery.start_soon(self._requests.insist, method, params)

    def reply(self, reply: Reply) -> None:
        """Answer a request of theirs, whenever there is room."""
        answer: Message = Response(reply.id, encode_json(reply.result))
        if reply.error is not None:
            answer = ErrorResponse(reply.id, _NO_SUCH_METHOD, reply.error)
        if not self._requests.say(answer) and self._nursery is not None and not self.talk.has_ended:
            self._nursery.start_soon(self._requests.say_later, answer)

    async def clear_away(self, thread: str) -> None:
        """Kill what the commands of a thread have left."""
        if self._tree is None:
            await trio.lowlevel.checkpoint()
        else:
            await kill_stragglers(self._tree.id, THREAD_VARIABLE, thread)

    def leave(self, conversation: CodexConversation, *, keep: bool) -> None:
        """Talk no more about a thread; `keep` it loaded for a while, if all with it is well.

        A thread costs memory, and as long as it is loaded nobody else can go on with it. Those of
        agents are given back, and what they do is ended.
        """
        if conversation not in self._conversations:
            return
        self._conversations.remove(conversation)
        for id_, of in list(self._calls.items()):
            if of.conversation is not conversation:
                continue
            if of.call.method in _BEGINNING:
                if of.call.method != "thread/fork" and "threadId" in of.call.params:
                    self._stock.expect_unwanted(str(of.call.params["threadId"]))
                continue  # what was begun must be ended, once it is known what it is
            del self._calls[id_]
            self._requests.withdraw(id_)
        names = self._threads.leave(conversation)
        thread, turn = conversation.thread, conversation.turn
        if thread is None or self._nursery is None or self.talk.has_ended:
            return
        for name in names:
            if name != thread:
                self._stock.give_back(name, conversation.turns.get(name, ""))
        if not (keep and turn is None and self._stock.keep(thread)):
            self._stock.give_back(thread, turn)

    # --- what comes ------------------------------------------------------------------------------

    def _take(self, lines: Sequence[Line]) -> None:
        reads: defaultdict[CodexConversation, list[Frame]] = defaultdict(list)
        owner = self._threads.owner
        for line in lines:
            notice = read_notice(line)
            if isinstance(notice, Delta) and (streams := owner(notice.thread_id)) is not None:
                reads[streams].append(notice)
                continue
            for conversation, frame in self._heard(line, notice):
                conversation.note(frame)
                reads[conversation].append(frame)
        size = sum([len(line) for line in lines if isinstance(line, bytes)])
        for conversation, frames in reads.items():
            conversation.driver.feed(frames, size // len(reads))

    def _heard(self, line: Line, notice: Notice | None) -> list[tuple[CodexConversation, Frame]]:
        if notice is not None:
            return self._told(notice)
        return [each for message in decode(line) for each in self._routed(message)]

    def _routed(self, message: Message | NoFrame) -> list[tuple[CodexConversation, Frame]]:
        match message:
            case Response() | ErrorResponse():
                return self._settled(message)
            case Request():
                asking = asking_of(message)
                conversation = self._threads.owner(thread_of(asking.params))
                if conversation is None:
                    self.reply(Reply(asking.id, error="nobody here knows of that thread"))
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
                self._stock.note_closed(thread)
            case SettingsChanged():
                self._stock.note_settings(thread, frame)
            case TurnStarted(turn=turn) if self._stock.is_unwanted(thread):
                self.call_soon("turn/interrupt", {"threadId": thread, "turnId": turn.id})
            case _:
                pass

    def _adopted(self, frame: Notice | Untyped) -> list[tuple[CodexConversation, Frame]]:
        """Have the threads of agents belong to who has called them; return what came of them."""
        caller, agents = called_in(frame)
        conversation = self._threads.owner(caller)
        held: list[tuple[CodexConversation, Frame]] = []
        for agent in agents:
            if agent in self._threads or agent in self._stock:
                continue
            if conversation is not None:
                held += [(conversation, each) for each in self._threads.claim(agent, conversation)]
            elif self._stock.is_unwanted(caller):
                begun = [each for each in self._threads.forget(agent) if _begins(each)]
                self._stock.give_back(agent, "")
                for each in begun:
                    self._note(agent, each)
        return held

    def _about(self, thread: str, frame: Frame) -> list[tuple[CodexConversation, Frame]]:
        owner = self._threads.owner(thread)
        if owner is not None:
            if isinstance(frame, ThreadClosed) and thread != owner.thread:
                self._threads.forget(thread)
            return [(owner, frame)]
        if thread:
            if self._conversations and thread not in self._stock:
                self._threads.hold(thread, frame)
            return []
        if not self._conversations:
            self._early.append(frame)
            del self._early[:-EARLY]
        return [(each, frame) for each in self._conversations]

    def _settled(self, answer: Response | ErrorResponse) -> list[tuple[CodexConversation, Frame]]:
        asked = self._requests.settle(answer)
        if asked is None:
            return []
        theirs = self._calls.pop(asked.id)
        conversation, call = theirs.conversation, theirs.call
        if conversation not in self._conversations:
            self._undo(call, answer)
            return []
        frame = _answer(call, answer)
        held: list[Frame] = []
        if call.method in OPENING and isinstance(answer, Response):
            held = self._bind(conversation, call, answer)
        return [(conversation, each) for each in (frame, *held)]

    def _undo(self, call: Call, answer: Response | ErrorResponse) -> None:
        """End what was begun for somebody who has left before it was known what it is."""
        thread = str(call.params.get("threadId"))
        begun = decoded(answer.result, _Begun) if isinstance(answer, Response) else None
        opened = decoded(answer.result, _Opened) if isinstance(answer, Response) else None
        if call.method == "turn/start" and begun is not None:
            self.call_soon("turn/interrupt", {"threadId": thread, "turnId": begun.turn.id})
        elif call.method in OPENING and opened is not None:
            self._stock.give_back(opened.thread.id)
        elif call.method in OPENING:
            self._stock.give_up(thread)

    def _bind(self, conversation: CodexConversation, call: Call, answer: Response) -> list[Frame]:
        opened = decoded(answer.result, _Opened)
        if opened is None:
            return []
        conversation.thread = opened.thread.id
        self._stock.note_opened(opened.thread.id, call, answer.result)
        return self._threads.claim(opened.thread.id, conversation)

    async def _room(self) -> None:
        await trio.lowlevel.checkpoint()
        for each in list(self._conversations):
            await each.driver.room()

    def _is_over(self) -> None:
        for each in self._conversations:
            each.driver.end()
        self._stock.end()
        if self._nursery is not None:
            self._nursery.cancel_scope.cancel()


class _Begun(msgspec.Struct):
    turn: ThreadRef


class _Opened(msgspec.Struct):
    thread: ThreadRef


def _begins(frame: Frame) -> bool:
    return isinstance(frame, TurnStarted)


def _answer(call: Call, answer: Response | ErrorResponse) -> Answer:
    if isinstance(answer, Response):
        return Answer(call.id, call.method, answer.result)
    return Answer(call.id, call.method, refusal=Refusal(answer.code or 0, answer.message))


def _thread_in(frame: Untyped) -> str:
    match frame.value:
        case {"params": params}:
            return thread_of(params) or ""
        case _:
            return ""
