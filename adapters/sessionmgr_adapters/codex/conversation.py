"""A run's time with one thread of an app-server, and with those of the agents that it calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.adapter.kit.arrivals import Arrivals
from sessionmgr_adapters.codex.frames import Asking, Frame, TurnEnded, TurnStarted
from sessionmgr_adapters.codex.outgoing import Call, Reply
from sessionmgr_adapters.codex.questions import question_of, verdict

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from sessionmgr.adapter.question import Decision
    from sessionmgr.model import Json
    from sessionmgr_adapters.codex.outgoing import Told
    from sessionmgr_adapters.codex.sdk import CodexConnection


class CodexConversation:
    """A run's time with one thread, and with those of its agents."""

    def __init__(self, connection: CodexConnection) -> None:
        self.arrivals: Final = Arrivals[Frame]()
        self.thread: str | None = None
        """The thread, once it is open."""
        self.turns: Final[dict[str, str]] = {}
        """The turns that are on, by thread."""
        self._connection: Final = connection
        self._asked: Final[dict[str, Asking]] = {}
        self._stops = False

    @property
    def turn(self) -> str | None:
        """The turn of its own thread that is on."""
        return self.turns.get(self.thread or "")

    def take(self, frames: list[Frame], size: int) -> None:
        """Take in what has come."""
        for frame in frames:
            match frame:
                case Asking():
                    self._asked[question_of(frame.id)] = frame
                case TurnStarted(thread_id=thread, turn=turn):
                    self.turns[thread] = turn.id
                    self._stop_if_wanted()
                case TurnEnded(thread_id=thread):
                    self.turns.pop(thread, None)
                case _:
                    pass
        self.arrivals.put(frames, size)

    async def send(self, message: Told) -> None:
        """Call something, or answer; a call waits for its place."""
        await trio.lowlevel.checkpoint()
        if isinstance(message, Call):
            await self._connection.call(self, message)
        else:
            self._connection.reply(message)

    async def clear_away(self, threads: Iterable[str]) -> None:
        """Kill what the commands of threads have left, in whatever session it hides."""
        await trio.lowlevel.checkpoint()
        for each in threads:
            await self._connection.clear_away(each)

    async def interrupt(self) -> None:
        """Ask Codex to end the turn, as soon as there is one."""
        await trio.lowlevel.checkpoint()
        self._stops = True
        self._stop_if_wanted()

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

    def events(self) -> AsyncIterator[Sequence[Frame]]:
        """Iterate over what comes, a read at a time."""
        return self.arrivals

    def close(self, *, keep: bool = False) -> None:
        """Talk no more; `keep` the thread for the next run, if all with it is well."""
        self._connection.leave(self, keep=keep)
