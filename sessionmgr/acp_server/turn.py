"""Turns: the prompts of one session, one after the other."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

import msgspec
import trio

from sessionmgr.model import RunCancelled, RunCompleted, RunPaused

if TYPE_CHECKING:
    from sessionmgr.acp_server.params import JsonObject
    from sessionmgr.acp_server.prompt import PromptContent
    from sessionmgr.manager import RunHandle
    from sessionmgr.model import Failure, RunEnded

DETAIL: Final = "the client cancelled it"
_STOP_REASONS: Final = {
    "max_tokens": "max_tokens",
    "refusal": "refusal",
    "refused": "refusal",
    "max_turns": "max_turn_requests",
    "error_max_turns": "max_turn_requests",
    "max_turn_requests": "max_turn_requests",
}


class TurnOutcome(msgspec.Struct, frozen=True):
    """The end of a turn: a stop reason of the protocol, or a failure."""

    stop_reason: str
    failure: Failure | None = None


class ServedTurn:
    """One prompt, from its arrival to its end."""

    def __init__(self, blocks: tuple[JsonObject, ...], content: PromptContent) -> None:
        self.blocks: Final = blocks
        self.content: Final = content
        self.may_begin: Final = trio.Event()
        """Set when the turns before it are over, or when it is cancelled."""
        self.is_cancelled = False
        self.is_over = False
        self.run: RunHandle | None = None
        self.later: Final[deque[RunHandle]] = deque()
        """Runs of messages that the client has added to the turn as it ended."""
        self.steering: Final = trio.Lock()
        """Held while a message is added to the turn, and at its end."""

    def cancel(self) -> None:
        """Begin to end the turn, without waiting for it."""
        self.is_cancelled = True
        self.may_begin.set()
        for run in (self.run, *self.later):
            if run is not None:
                run.cancel(DETAIL)

    def set_run(self, run: RunHandle) -> None:
        """Note the current run; a turn that was cancelled meanwhile cancels it."""
        self.run = run
        if self.is_cancelled:
            run.cancel(DETAIL)

    def add_later(self, run: RunHandle) -> None:
        """Add a run that follows the current one; a cancelled turn cancels it."""
        self.later.append(run)
        if self.is_cancelled:
            run.cancel(DETAIL)

    def end(self, event: RunEnded | None) -> TurnOutcome:
        """Return the end of the turn for the end of its last run."""
        if self.is_cancelled or isinstance(event, RunCancelled | RunPaused):
            return TurnOutcome("cancelled")
        if event is None:  # the manager has closed
            return TurnOutcome("cancelled")
        reason = _STOP_REASONS.get(event.stop_reason or "")
        if isinstance(event, RunCompleted):
            return TurnOutcome(reason or "end_turn")
        if reason in {"refusal", "max_turn_requests"}:
            return TurnOutcome(reason)
        if event.failure is not None and event.failure.kind == "refused":
            return TurnOutcome("refusal")
        return TurnOutcome("error", event.failure)


class TurnQueue:
    """The turns of a session in the order of their arrival; the first one is current."""

    def __init__(self) -> None:
        self._turns: Final[deque[ServedTurn]] = deque()
        self._is_empty = trio.Event()
        self._is_empty.set()

    def __len__(self) -> int:
        return len(self._turns)

    @property
    def current(self) -> ServedTurn | None:
        """The turn that runs or is about to."""
        return self._turns[0] if self._turns else None

    def add(self, turn: ServedTurn) -> None:
        """Add a turn; it may begin when those before it are over."""
        if not self._turns:
            self._is_empty = trio.Event()
            turn.may_begin.set()
        self._turns.append(turn)

    def remove(self, turn: ServedTurn) -> None:
        """Remove a turn that is over, and let the next one begin."""
        turn.is_over = True
        self._turns.remove(turn)
        if self._turns:
            self._turns[0].may_begin.set()
        else:
            self._is_empty.set()

    def cancel(self) -> None:
        """Begin to end all turns."""
        for turn in list(self._turns):
            turn.cancel()

    async def wait_empty(self) -> None:
        """Wait until no turn is left."""
        await self._is_empty.wait()
