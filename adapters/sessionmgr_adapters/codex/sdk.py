"""The connection to a Codex app-server: one child process, and one conversation per run.

Tests replace it by a mock. The connection renumbers the calls of all conversations, and limits the
number of open calls to what the server can answer. `router` pushes incoming frames to the driver
of the conversation that owns their thread. When a conversation closes early, the connection undoes
its open calls: a turn that still starts is interrupted, and a thread that still opens is unloaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import trio
from msgspec.structs import replace

from sessionmgr.adapter.kit import (
    BUSY,
    WRITE_BUFFER_FULL,
    JsonRpcPeer,
    PeerReply,
    RpcAnswer,
    RpcCall,
    RpcRefusal,
    StdioChild,
)
from sessionmgr.process import kill_processes_with_env
from sessionmgr.wire import RpcErrorResponse, RpcNotification, RpcResponse
from sessionmgr_adapters.codex import frames
from sessionmgr_adapters.codex.conversation import CodexConversation
from sessionmgr_adapters.codex.decode import decode_result
from sessionmgr_adapters.codex.launch import OPENING_METHODS
from sessionmgr_adapters.codex.router import FrameRouter
from sessionmgr_adapters.codex.thread_cache import ThreadCache

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from sessionmgr.adapter import ConnectionSpec, Driver
    from sessionmgr.model import Json
    from sessionmgr_adapters.codex.frames import CodexFrame


THREAD_VARIABLE: Final = "CODEX_THREAD_ID"
"""The variable by which commands can be traced to their thread."""
_CLIENT_INFO: Final[dict[str, Json]] = {
    "clientInfo": {"name": "sessionmgr", "title": "sessionmgr", "version": "1"},
    "capabilities": {"experimentalApi": True},
}
_THREAD_METHODS: Final = OPENING_METHODS | {"turn/start"}
"""Calls whose effect must be undone if their conversation closes before the answer."""


def connect_codex(spec: ConnectionSpec) -> AbstractAsyncContextManager[CodexConnection]:
    """Start an app-server that runs for the length of the block.

    Raises:
        ProcessError: It could not be started.
    """
    return CodexConnection().running(spec.launcher, spec.command)


class _OpenCall(msgspec.Struct, frozen=True):
    """An open call, and the conversation that sent it."""

    conversation: CodexConversation
    call: RpcCall


class CodexConnection(StdioChild):
    """One app-server."""

    def __init__(self) -> None:
        self._router: Final = FrameRouter(self)
        super().__init__(self._router.handle_lines, room=self._room, over=self._is_over)
        self._requests: Final = JsonRpcPeer[_OpenCall](self.write, version=False)
        self._conversations: Final = self._router.conversations
        self.cache: Final = ThreadCache(self._requests.request, self.discard)
        """The threads that the app-server has loaded."""
        self._info: frames.ServerInfo | None = None
        self._greeted: Final = trio.Event()
        self._nursery: trio.Nursery | None = None
        """Runs calls that belong to no conversation, until the connection ends."""

    async def run_background(self) -> None:
        """Initialize the connection, then run the cache's tasks until it ends."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            self.cache.open(nursery)
            await self._greet()
            await trio.sleep_forever()

    async def _greet(self) -> None:
        """Initialize; runs need not wait for the slow account query that follows."""
        answer = await self._requests.request("initialize", _CLIENT_INFO)
        if isinstance(answer, RpcResponse):
            hello = decode_result(answer.result, frames.ServerInfo) or frames.ServerInfo()
            self._requests.notify(RpcNotification("initialized"))
            self._set_info(hello)
            paid = await self._requests.request("account/read", {"refreshToken": False})
            found = (
                decode_result(paid.result, _AccountRead) if isinstance(paid, RpcResponse) else None
            )
            account = None if found is None else found.account
            self._set_info(replace(hello, account="" if account is None else account.type))
        else:
            self._set_info(frames.ServerInfo(refusal=RpcRefusal.of(answer)))
        self._greeted.set()

    def _set_info(self, hello: frames.ServerInfo) -> None:
        """Store the app-server's description, and feed it to all drivers."""
        self._info = hello
        for each in list(self._conversations):
            each.driver.feed([hello], 0)

    async def open(self, spec: object, driver: Driver[CodexFrame]) -> CodexConversation:
        """Open a conversation; its first call names the thread."""
        await trio.lowlevel.checkpoint()
        conversation = CodexConversation(self, driver)
        self._conversations.append(conversation)
        early = self._router.take_early() + ([] if self._info is None else [self._info])
        if early:
            driver.feed(early, 0)
        if self.has_ended:
            driver.end()
        return conversation

    # --- sending ---------------------------------------------------------------------------------

    async def call(self, conversation: CodexConversation, call: RpcCall) -> None:
        """Send a call of a conversation as soon as a slot is free; the answer becomes a frame."""
        if call.method == "turn/start":
            await self._greeted.wait()  # a run's first event names the account that pays
        opened, thread = self.cache.reuse(call), str(call.params.get("threadId"))
        if opened is not None:  # it is still loaded with the same terms
            conversation.thread = thread
            self._router.claim(thread, conversation)
            conversation.driver.feed(
                [RpcAnswer(call.id, call.method, opened, is_remembered=True)], 0
            )
            return
        if call.method == "thread/resume":
            await self.cache.release(thread)
        await self._requests.slot()
        if conversation not in self._conversations:
            self._requests.release_slot()
            return
        if self._requests.send(call.method, call.params, _OpenCall(conversation, call)) is None:
            refusal = RpcRefusal(BUSY, WRITE_BUFFER_FULL)
            conversation.driver.feed([RpcAnswer(call.id, call.method, refusal=refusal)], 0)

    def call_soon(self, method: str, params: dict[str, Json]) -> None:
        """Send a call whose answer is ignored."""
        if self._nursery is not None:
            self._nursery.start_soon(self._requests.request_with_retries, method, params)

    def reply(self, reply: PeerReply) -> None:
        """Answer a request of the app-server as soon as the write buffer has room."""
        if not self._requests.notify(reply.response) and self._nursery is not None:
            self._nursery.start_soon(self._requests.notify_later, reply.response)

    async def discard(self, thread: str) -> None:
        """Kill the processes that the commands of a thread left running."""
        if self.tree is None:
            await trio.lowlevel.checkpoint()
        else:
            await kill_processes_with_env(self.tree.id, THREAD_VARIABLE, thread)

    def leave(self, conversation: CodexConversation, *, keep: bool) -> None:
        """End a conversation; `keep` its thread loaded for a while if no turn is running.

        A thread costs memory, and no other program can resume it while it is loaded. The threads of
        agents are unloaded, after their work is ended.
        """
        if conversation not in self._conversations:
            return
        threads = self._router.leave(conversation)
        for id_, open_call in list(self._requests.sent.items()):
            call = open_call.call
            if open_call.conversation is not conversation:
                continue
            if call.method in _THREAD_METHODS:
                # Another resume of the thread must wait until this call is answered and undone.
                # A fork does not open the thread that it names, but a copy.
                if call.method != "thread/fork" and "threadId" in call.params:
                    self.cache.mark_for_unloading(str(call.params["threadId"]))
                continue  # its answer names what must be undone: see `_undo`
            self._requests.withdraw(id_)
        thread, turn = conversation.thread, conversation.turn
        if thread is None or self._nursery is None:
            return
        for each in threads:
            if each != thread:
                self.cache.unload(each, conversation.turns.get(each, ""))
        if not (keep and turn is None and self.cache.add_idle(thread)):
            self.cache.unload(thread, turn)

    # --- receiving -------------------------------------------------------------------------------

    def caller(self, answer: RpcResponse | RpcErrorResponse) -> CodexConversation | None:
        """Return the conversation whose call is answered; None if the connection called."""
        open_call = None if answer.id is None else self._requests.sent.get(answer.id)
        return None if open_call is None else open_call.conversation

    def resolve(
        self, answer: RpcResponse | RpcErrorResponse
    ) -> list[tuple[CodexConversation, CodexFrame]]:
        """Return the frames for an answer, with the conversation that sent the call."""
        open_call = self._requests.resolve(answer)
        if open_call is None:
            return []
        conversation, call = open_call.conversation, open_call.call
        if conversation not in self._conversations:
            self._undo(call, answer)
            return []
        frame = RpcAnswer.to(call, answer)
        held: list[CodexFrame] = []
        if call.method in OPENING_METHODS and isinstance(answer, RpcResponse):
            held = self._bind(conversation, call, answer)
        return [(conversation, each) for each in (frame, *held)]

    def _undo(self, call: RpcCall, answer: RpcResponse | RpcErrorResponse) -> None:
        """Undo a call of a conversation that closed before the answer came."""
        thread = str(call.params.get("threadId"))
        result = answer.result if isinstance(answer, RpcResponse) else b""
        begun, opened = (
            decode_result(result, frames.TurnStartResult),
            decode_result(result, frames.ThreadResult),
        )
        if call.method == "turn/start" and begun is not None:
            self.call_soon("turn/interrupt", {"threadId": thread, "turnId": begun.turn.id})
        elif call.method in OPENING_METHODS and opened is not None:
            self.cache.unload(opened.thread.id)
        elif call.method == "thread/resume":
            # Not for a fork: its `threadId` is the source, which may still be unloading.
            self.cache.unmark_for_unloading(thread)

    def _bind(
        self, conversation: CodexConversation, call: RpcCall, answer: RpcResponse
    ) -> list[CodexFrame]:
        opened = decode_result(answer.result, frames.ThreadResult)
        if opened is None:
            return []
        conversation.thread = opened.thread.id
        self.cache.note_opened(opened.thread.id, call, answer.result)
        return self._router.claim(opened.thread.id, conversation)

    async def _room(self) -> None:
        await trio.lowlevel.checkpoint()
        for each in list(self._conversations):
            await each.driver.room()

    def _is_over(self) -> None:
        for each in self._conversations:
            each.driver.end()
        self.cache.end()
        if self._nursery is not None:
            self._nursery.cancel_scope.cancel()
            self._nursery = None


class _Account(msgspec.Struct):
    type: str = ""


class _AccountRead(msgspec.Struct):
    account: _Account | None = None
