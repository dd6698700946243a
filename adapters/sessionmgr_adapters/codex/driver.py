"""The driver of one run on a thread of an app-server.

The connection pushes the frames of each read into `handle_frames`, which never waits; code that
waits for answers runs in tasks beside it. A run is over when its turn has ended, the model has
read every message that was added to it, and nothing that the run started still works: the run
waits for its agents and ends its background commands. `phase` contains the table of its life cycle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio
from msgspec import UNSET

from sessionmgr.adapter.kit import (
    ChangeSignal,
    FollowUps,
    JsonRpcCaller,
    PeerRequest,
    PhasedConversationRun,
    RpcAnswer,
    RpcOutgoing,
    finish_with_output,
    parse_output,
)
from sessionmgr.model import MessageStreamed
from sessionmgr_adapters.codex import frames
from sessionmgr_adapters.codex.approvals import request_name
from sessionmgr_adapters.codex.cleanup import CLEANUP_TIMEOUT, TurnCleanup
from sessionmgr_adapters.codex.configure import ThreadPreparation
from sessionmgr_adapters.codex.decode import decode_result
from sessionmgr_adapters.codex.failures import call_failure, failure_of_end, is_transient_refusal
from sessionmgr_adapters.codex.frames import CodexDelta, CodexFrame, CodexMessageDelta
from sessionmgr_adapters.codex.items import UserMessageItem
from sessionmgr_adapters.codex.launch import OPENING_METHODS, text_input, turn_params
from sessionmgr_adapters.codex.normalise import normalise, start_events
from sessionmgr_adapters.codex.permissions import FULL_ACCESS, POLICIES
from sessionmgr_adapters.codex.phase import MINOR, TRANSITIONS, CodexPhase, CodexStep
from sessionmgr_adapters.codex.request_handler import CodexRequestHandler
from sessionmgr_adapters.codex.state import CodexState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.adapter import RunContext
    from sessionmgr.model import Event, Failure, Json
    from sessionmgr_adapters.codex.config import ConfigCache
    from sessionmgr_adapters.codex.configure import CodexRunRequest
    from sessionmgr_adapters.codex.frames import CodexTurn


class CodexDriver(PhasedConversationRun[RpcOutgoing, CodexFrame, CodexPhase, CodexStep]):
    """One run on a thread of an app-server."""

    def __init__(self, run: RunContext, request: CodexRunRequest, configs: ConfigCache) -> None:
        super().__init__(run, TRANSITIONS, CodexPhase.CONNECTING, lost=CodexStep.LOST, minor=MINOR)
        is_resumed = run.provider_session_id is not None
        self.state: Final = CodexState(is_resumed=is_resumed, warned=request.warned)
        self.last_turn: CodexTurn | None = None
        """The turn that ended last; None while a turn is running."""
        self.failure: Failure | None = None
        """A failure that ends the run, regardless of what Codex reports."""
        self.changes: Final = ChangeSignal()
        self.caller: Final = JsonRpcCaller(self._send, is_transient_refusal)
        self._request: Final = request
        self._preparation: Final = ThreadPreparation(
            run, self.caller, self.state, self.changes, request, configs
        )
        self._handler: Final = CodexRequestHandler(self, self.state, request.options)
        self._cleanup: Final = TurnCleanup(
            self.state, self.changes, self.caller, lambda: self.phase is CodexPhase.SETTLING
        )
        self._follow_ups: Final = FollowUps(run)
        self._steered: Final[set[str]] = set()
        """Our ids of the messages that were sent into the running turn."""

    @property
    def thread(self) -> str:
        """The run's thread, or "" before it is known."""
        return self.state.thread

    @property
    def is_lost(self) -> bool:
        """Whether the connection to the app-server ended before the run was over."""
        return self.phase in (CodexPhase.LOST, CodexPhase.UNREACHED)

    @property
    def is_unresponsive(self) -> bool:
        """Whether the app-server did not answer a call in time."""
        return self.caller.is_unresponsive

    async def _send(self, message: RpcOutgoing) -> None:
        await self.conversation.send(message)

    # --- start and messages ----------------------------------------------------------------------

    async def begin(self) -> None:
        """Prepare the thread and send the prompt."""
        failure = await self._preparation.prepare()
        if self.is_over:
            return
        if failure is not None or self.run.cancelling is not None:
            self.failure = failure
            self.take_step(CodexStep.REFUSED)
            return
        await self._start_turn(self._request.content, f"prompt of {self.run.run_id}")

    async def _start_turn(self, content: list[Json], message_id: str) -> None:
        self.take_step(CodexStep.ASK)
        self.last_turn = None
        params = turn_params(self.run, self.state.thread, content, message_id)
        answer = await self.caller.call("turn/start", params)
        if answer.refusal is not None and not self.is_over:
            self.failure = call_failure(answer)
            self.take_step(CodexStep.REFUSED)

    async def interrupt(self) -> None:
        """Ask Codex to interrupt the turn; frames are read until the turn has ended."""
        self.take_step(CodexStep.INTERRUPT)
        self.changes.notify()
        is_on = self.phase is CodexPhase.STOPPING or self.state.is_turning
        if is_on and not self.is_over:
            await self.conversation.interrupt()
        else:
            await trio.lowlevel.checkpoint()

    async def add(self, content: str, message_id: str) -> bool:
        """Send another message into the turn; return whether this run has accepted it."""
        await trio.lowlevel.checkpoint()
        is_on = self.phase is CodexPhase.RUNNING and bool(self.state.turn)
        if not is_on or self._request.options.follow_up == "later":
            return False
        params: dict[str, Json] = {
            "threadId": self.state.thread,
            "expectedTurnId": self.state.turn,
            "clientUserMessageId": message_id,
            "input": [text_input(content)],
        }

        async def send() -> None:
            self._steered.add(message_id)
            self.start(self._steer, message_id, params)
            await trio.lowlevel.checkpoint()

        return await self._follow_ups.offer(message_id, content, send)

    async def _steer(self, message_id: str, params: dict[str, Json]) -> None:
        answer = await self.caller.call("turn/steer", params)
        if answer.refusal is None:
            self._follow_ups.accept(message_id)
        else:
            self._steered.discard(message_id)
            self._follow_ups.refuse(message_id)
        self.changes.notify()

    # --- frames ----------------------------------------------------------------------------------

    def handle_frames(self, frames: Sequence[CodexFrame]) -> None:
        """Process the frames of one read."""
        state = self.state
        events: list[Event] = []
        own = state.thread if state.started else None
        item = name = ""  # the id of the streaming item, and our name of it
        for frame in frames:
            # The fast path: nearly all frames are pieces of the run's own text.
            if type(frame) is CodexMessageDelta and frame.thread_id == own:
                if frame.item_id != item:
                    item, name = frame.item_id, state.name(frame.item_id)
                events.append(MessageStreamed(delta=frame.delta, message_id=name))
                continue
            events += normalise(frame, state)
            if not isinstance(frame, CodexDelta):
                events += self._handle_frame(frame)
            own, item = state.thread if state.started else None, ""
        self.emit(*events)
        self.changes.notify()

    def _handle_frame(self, frame: CodexFrame) -> list[Event]:
        """Act on a frame, beside the events that `normalise` returns for it."""
        if isinstance(frame, frames.ServerInfo):
            self.state.hello = frame
            return []
        if not (isinstance(frame, RpcAnswer) and frame.is_remembered):
            self.take_step(CodexStep.HEARD)
        match frame:
            case RpcAnswer():
                return self._answered(frame)
            case PeerRequest():
                self._handler.handle(frame)
            case frames.RequestResolvedNotice(request_id=id_):
                self._handler.withdraw(request_name(id_))
            case frames.ItemStartedNotice(item=UserMessageItem(client_id=str(name))):
                self._follow_ups.mark_heard(name)
            case frames.ThreadSettingsNotice(thread_id=self.state.thread, thread_settings=settings):
                self.state.settings = settings
            case frames.TurnStartedNotice(thread_id=self.state.thread, turn=turn):
                self.state.turn = turn.id
            case frames.TurnEndedNotice(thread_id=self.state.thread, turn=turn) if (
                turn.id == self.state.turn
            ):
                self._turn_ended(turn)
            case _:
                pass
        return []

    def _answered(self, answer: RpcAnswer) -> list[Event]:
        # Change the state here, not in the task that waits for the answer: the next frame of this
        # read may be about the same thread and turn.
        self.caller.resolve(answer)
        if answer.refusal is None:
            if answer.method in OPENING_METHODS:
                opened = decode_result(answer.result, frames.ThreadOpenResult)
                if opened is not None:
                    self.state.open(opened)
            elif answer.method == "turn/start":
                started = decode_result(answer.result, frames.TurnStartResult)
                if started is not None:
                    self.state.turn = started.turn.id
                return [] if self.state.started else start_events(self.state)
        return []

    # --- end -------------------------------------------------------------------------------------

    def _turn_ended(self, turn: CodexTurn) -> None:
        before, self.last_turn = self.phase, turn
        self.take_step(CodexStep.TURN_ENDED)
        if self.phase is not before:
            if self._steered or self._cleanup.is_needed or self._is_loose:
                self.start(self._finish_turn)
            else:
                self.take_step(CodexStep.DONE)

    async def _finish_turn(self) -> None:
        """Start a further turn for unanswered messages, or end the remaining work and the run."""
        with trio.move_on_after(CLEANUP_TIMEOUT):
            # Codex may still accept a message as its turn ends.
            await self.changes.wait_until(lambda: not self._follow_ups.offered)
        unheard = self._follow_ups.undelivered
        # Such a message is already in the thread, so it is not sent again.
        is_more = bool(unheard) or not self.state.unanswered.isdisjoint(self._steered)
        if is_more and self._has_completed and self.phase is CodexPhase.SETTLING:
            for name in unheard:
                self._follow_ups.mark_heard(name)
            self._steered.clear()
            await self._start_turn(
                [*map(text_input, unheard.values())], f"more of {self.run.run_id}"
            )
            return
        if self._has_completed:
            await self._cleanup.wait_for_agents()
        await self._cleanup.end_work()
        if self._is_loose:
            with trio.move_on_after(CLEANUP_TIMEOUT):
                await self.conversation.discard()
        await self._cleanup.release_agent_threads()
        self.emit(*self._cleanup.unfinished_call_events())
        self.take_step(CodexStep.DONE)

    @property
    def _has_completed(self) -> bool:
        return self.last_turn is not None and self.last_turn.status == "completed"

    @property
    def _is_loose(self) -> bool:
        """Whether unconfined commands may still run, because the turn was cut short."""
        is_free = POLICIES[self.run.permission.effective].sandbox == FULL_ACCESS
        was_cut = self.phase is CodexPhase.CLEARING or not self._has_completed
        return is_free and was_cut and self.state.has_commanded

    def on_leave(self) -> None:
        """Emit the events that were held back, and report the messages that were never read."""
        if self.state.early:
            self.emit(*self.state.early)
        self._follow_ups.end()

    def keeps_session(self) -> bool:
        """Whether the thread stays loaded for the next run; only if its state is certain.

        As long as the thread is loaded, its agents keep the permissions with which they were
        started, even if the permissions of the thread have changed since.
        """
        is_well = self.phase is CodexPhase.OVER and self._has_completed and not self.is_unresponsive
        is_odd = self._cleanup.has_running_work or self.state.agents.any_called
        return self._request.options.keep and is_well and not is_odd


async def finish_by_last_turn(run: RunContext, turn: CodexTurn, state: CodexState) -> None:
    """Report the end of a run by its last turn."""
    failure = failure_of_end(turn, state)
    if failure is not None:
        await run.fail(failure, stop_reason=turn.status)
    else:
        output = UNSET if run.schema is None else parse_output(state.text)
        await finish_with_output(run, output, stop_reason=turn.status)
