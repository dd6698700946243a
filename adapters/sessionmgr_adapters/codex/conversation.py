"""A run's time with one thread of an app-server, and with those of the agents that it calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from sessionmgr_adapters.codex.frames import Asking, ItemStarted, TurnEnded, TurnStarted
from sessionmgr_adapters.codex.items import CommandExecution
from sessionmgr_adapters.codex.outgoing import Call, Reply
from sessionmgr_adapters.codex.questions import question_of, verdict

if TYPE_CHECKING:
    from sessionmgr.adapter.connections import Driver
    from sessionmgr.adapter.question import Decision
    from sessionmgr.model import Json
    from sessionmgr_adapters.codex.frames import Frame
    from sessionmgr_adapters.codex.outgoing import Told
    from sessionmgr_adapters.codex.sdk import CodexConnection


class CodexConversation:
    """A run's time with one thread, and with those of its agents."""

    def __init__(self, connection: CodexConnection, driver: Driver[Frame]) -> None:
        self.driver: Final = driver
        self.thread: str | None = None
        """The thread, once it is open."""
        self.turns: Final[dict[str, str]] = {}
        """The turns that are on, by thread."""
        self._connection: Final = connection
        self._asked: Final[dict[str, Asking]] = {}
        self._commanding: Final[set[str]] = set()
        self._stops = False

    @property
    def turn(self) -> str | None:
        """The turn of its own thread that is on."""
        return self.turns.get(self.thread or "")

    def note(self, frame: Frame) -> None:
        """Note what a frame says of its questions, its turns and its commands."""
        match frame:
            case Asking():
                self._asked[question_of(frame.id)] = frame
            case TurnStarted(thread_id=thread, turn=turn):
                self.turns[thread] = turn.id
                self._stop_if_wanted()
            case TurnEnded(thread_id=thread):
                self.turns.pop(thread, None)
            case ItemStarted(thread_id=thread, item=CommandExecution()):
                self._commanding.add(thread)
            case _:
                pass

    async def send(self, message: Told) -> None:
        """Call something, or answer; a call waits for its place."""
        await trio.lowlevel.checkpoint()
        if isinstance(message, Call):
            await self._connection.call(self, message)
        else:
            self._connection.reply(message)

    async def clear_away(self) -> None:
        """Kill what its commands have left, in whatever session it hides."""
        await trio.lowlevel.checkpoint()
        for each in sorted(self._commanding):
            await self._connection.clear_away(each)

    async def interrupt(self) -> None:
        """Ask Codex to end the turn, as soon as there is one."""
        self._stops = True
        self._stop_if_wanted()
        await trio.lowlevel.checkpoint()

    def _stop_if_wanted(self) -> None:
        if self._stops and self.turn is not None:
            self._stops = False
            params: dict[str, Json] = {"threadId": self.thread, "turnId": self.turn}
            self._connection.call_soon("turn/interrupt", params)

    async def answer(self, question: str, decision: Decision) -> None:
        """Answer whether something may be done."""
        await trio.lowlevel.checkpoint()
        asking = self._asked.pop(question, None)
        if asking is not None:
            self._connection.reply(Reply(asking.id, verdict(asking, decision)))

    def close(self, *, keep: bool = False) -> None:
        """Talk no more; `keep` the thread for the next run, if all with it is well."""
        self._connection.leave(self, keep=keep)
