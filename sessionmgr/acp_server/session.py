"""One session of a client: its settings, its turns, and the updates about them."""

from __future__ import annotations

import base64
import os
from typing import TYPE_CHECKING, Final

from sessionmgr.acp_server.approvals import ApprovalForwarder
from sessionmgr.acp_server.configuration import SessionConfiguration
from sessionmgr.acp_server.errors import (
    BUSY,
    CANCELLED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    AcpRequestRefused,
    refusal_of_failure,
)
from sessionmgr.acp_server.prompt import read_prompt
from sessionmgr.acp_server.turn import ServedTurn, TurnOutcome, TurnQueue
from sessionmgr.acp_server.updates import EventTranslator
from sessionmgr.model import ImageReceived, Json, MessageSent, RunEnded
from sessionmgr.store import UnknownId

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from sessionmgr.acp_server.configuration import AgentContext, SessionSettings
    from sessionmgr.acp_server.params import JsonObject
    from sessionmgr.adapter import ApprovalRequest, Decision
    from sessionmgr.manager import RunHandle, SessionHandle
    from sessionmgr.model import AnyEvent

MOST_QUEUED: Final = 64
"""Prompts of one session that may wait."""


class ServedSession:
    """Session of a client; its runs are in the manager's session."""

    def __init__(self, context: AgentContext, settings: SessionSettings) -> None:
        self._context: Final = context
        self.configuration: Final = SessionConfiguration(context, settings)
        self._handle: SessionHandle | None = None
        self._turns: Final = TurnQueue()
        self._translator = EventTranslator(context.dialect)
        self._approvals: Final = ApprovalForwarder(context, self.send_state)

    def set_handle(self, handle: SessionHandle) -> None:
        """Set the manager's session, whose `approve` function is that of this object."""
        self._handle = handle

    @property
    def handle(self) -> SessionHandle:
        """The manager's session."""
        assert self._handle is not None
        return self._handle

    @property
    def is_busy(self) -> bool:
        """Whether a turn runs or waits."""
        return len(self._turns) > 0

    async def send_settings(self) -> None:
        """Send the mode and options after a change."""
        for update in self.configuration.updates():
            await self._send(update)

    # --- turns -----------------------------------------------------------------------------------

    def enqueue(self, blocks: tuple[JsonObject, ...]) -> ServedTurn:
        """Add a prompt to the queue of turns.

        Raises:
            AcpRequestRefused: The prompt is invalid, or another one runs and may not be waited for.
        """
        if self.is_busy and not self._context.dialect.has_states:
            raise AcpRequestRefused(
                BUSY,
                f"{self.handle.id} has a prompt that is not answered yet: wait for its answer, "
                "cancel it, or add a message to it with _session/steering",
            )
        if len(self._turns) > MOST_QUEUED:
            raise AcpRequestRefused(BUSY, f"{len(self._turns)} prompts of {self.handle.id} wait")
        turn = ServedTurn(blocks, read_prompt(blocks, self._context.offer))
        self._turns.add(turn)
        return turn

    async def play(
        self, turn: ServedTurn, insert: Callable[[str], Awaitable[None]] | None = None
    ) -> JsonObject:
        """Play a turn to its end, and return the answer to its prompt.

        `insert` is called with the id of the prompt's message, before all updates of the turn.

        Raises:
            AcpRequestRefused: The run has failed, or the turn was cancelled before it began.
            StartRefused: The run was refused.
        """
        context = self._context
        paths: tuple[str, ...] = ()
        try:
            await turn.may_begin.wait()
            if turn.is_cancelled:
                return self._unbegun()
            paths = context.images.write(turn.content)
            self._translator.begin_turn()
            run = await self.handle.admit(self.configuration.request(turn.content.text, paths))
            turn.set_run(run)
            end = await self._follow_all(turn, run, insert)
        finally:
            context.images.remove(paths)
            self._turns.remove(turn)
        if end.failure is not None:
            raise refusal_of_failure(end.failure)
        answer: JsonObject = {"stopReason": end.stop_reason}
        if (usage := self._translator.usage.totals()) is not None:
            answer["usage"] = usage
        return answer

    def _unbegun(self) -> JsonObject:
        """Return the answer to a prompt that was cancelled before it began.

        Raises:
            AcpRequestRefused: In version 2, whose answers say that a prompt has begun.
        """
        if self._context.dialect.has_states:
            raise AcpRequestRefused(CANCELLED, "the prompt was cancelled before it began")
        return {"stopReason": "cancelled"}

    async def _follow_all(
        self,
        turn: ServedTurn,
        run: RunHandle,
        insert: Callable[[str], Awaitable[None]] | None,
    ) -> TurnOutcome:
        """Follow the run of a turn, and the runs of messages that were added as it ended."""
        end = turn.end(await self._follow(turn, run, insert))
        while True:
            async with turn.steering:
                if not turn.later:
                    turn.is_over = True
                    return end
                turn.set_run(turn.later.popleft())
            assert turn.run is not None
            end = turn.end(await self._follow(turn, turn.run, None))

    async def _follow(
        self,
        turn: ServedTurn,
        run: RunHandle,
        insert: Callable[[str], Awaitable[None]] | None,
    ) -> RunEnded | None:
        """Send the updates of a run, and return its end."""
        cursor = run.events()
        end: RunEnded | None = None
        while events := await cursor.batch():
            for event in events:
                if insert is not None and isinstance(event, MessageSent):
                    await insert(event.message_id)
                    blocks = self._context.dialect.whole(
                        "user_message", event.message_id, turn.blocks
                    )
                    for update in blocks:
                        await self._send(update)
                    await self.send_state("running")
                    insert = None
                if isinstance(event, RunEnded):
                    end = event
            await self._send_events(events)
        self._approvals.end_run()
        return end

    async def read_cost(self) -> None:
        """Read the cost of the session's earlier runs, to which later ones are added."""
        costs = await self._context.manager.costs([self.handle.id])
        if (found := costs.get(self.handle.id)) is not None:
            self._translator.usage.set_session_cost(found.cost.usd)

    def require_cwd(self, cwd: str) -> None:
        """Raise if the session has another directory.

        Raises:
            AcpRequestRefused: It has.
        """
        if os.path.realpath(cwd) != os.path.realpath(self.handle.cwd):
            raise AcpRequestRefused(
                INVALID_PARAMS,
                f"cwd: {self.handle.id} stays in its directory {self.handle.cwd}; "
                f"it cannot move to {cwd!r}",
            )

    async def replay(self) -> None:
        """Send the stored events of the session as updates.

        Raises:
            LeaseHeld: Another live manager owns the session.
        """
        manager = self._context.manager
        try:
            runs = await manager.settled(self.handle.id)
        except UnknownId:  # it is stored with its first run
            runs = []
        self._translator = EventTranslator(self._context.dialect)
        for run in reversed(runs):
            cursor = manager.events(run.id)
            while events := await cursor.batch():
                await self._send_events(events, is_replay=True)

    async def _send_events(self, events: Sequence[AnyEvent], *, is_replay: bool = False) -> None:
        images = {
            event.blob: base64.b64encode(await self._context.manager.blob(event.blob)).decode()
            for event in events
            if isinstance(event, ImageReceived)
        }
        for update in self._translator.updates(events, images=images, is_replay=is_replay):
            await self._send(update)
        if not is_replay:
            await self._approvals.note(events)

    async def _send(self, update: JsonObject) -> None:
        params: JsonObject = {"sessionId": self.handle.id, "update": update}
        await self._context.connection.notify("session/update", params)

    async def send_state(self, state: str, **fields: Json) -> None:
        """Send the state of the session."""
        await self._send({"sessionUpdate": "state_update", "state": state, **fields})

    def cancel(self) -> None:
        """Begin to end all turns, without waiting for it."""
        self._turns.cancel()

    async def close(self) -> None:
        """End all turns, and release the session's resources."""
        self._turns.cancel()
        await self._turns.wait_empty()
        self.handle.release()

    # --- steering --------------------------------------------------------------------------------

    async def steer(self, blocks: tuple[JsonObject, ...]) -> JsonObject:
        """Add a message to the running turn, and return whether there was one.

        Raises:
            AcpRequestRefused: The message is invalid, or its delivery is unknown.
        """
        content = read_prompt(blocks, self._context.offer)
        if content.images:
            raise AcpRequestRefused(
                INVALID_PARAMS, "prompt: a message to a running turn takes no images"
            )
        turn = self._turns.current
        if turn is None or turn.run is None or not self._context.offer.steering:
            return {"outcome": "promptRequired"}
        async with turn.steering:
            if turn.is_over or turn.is_cancelled:
                return {"outcome": "promptRequired"}
            self._translator.add_own(content.text)
            sent = await turn.run.append(content.text)
            if sent.state == "unknown":
                raise AcpRequestRefused(
                    INTERNAL_ERROR, "the agent did not answer; it may have the message"
                )
            if sent.run is not turn.run and not sent.accepted:
                turn.add_later(sent.run)
        return {"outcome": "injected"}

    # --- approval --------------------------------------------------------------------------------

    async def approve(self, request: ApprovalRequest) -> Decision:
        """Return the client's decision about a request of the agent."""
        return await self._approvals.decide(self.handle.id, request)
