"""The driver of one run on an agent over ACP.

The connection pushes the frames of each read into `handle_frames`, which never waits. The steps
before the prompt (`opening`), and the answers to the agent's requests (`request_handler`), run in
tasks. `phase` has the table of the life cycle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
import trio
from msgspec.structs import replace

from sessionmgr.adapter.kit import PhasedConversationRun
from sessionmgr.model import (
    ErrorOccurred,
    Failure,
    FailureKind,
    PolicyViolation,
    RunStarted,
)
from sessionmgr_adapters.acp import frames
from sessionmgr_adapters.acp.answers import text_block
from sessionmgr_adapters.acp.calls import AcpCalls
from sessionmgr_adapters.acp.failures import failure_of_refusal, failure_of_turn, with_remedy
from sessionmgr_adapters.acp.frames import AcpFrame
from sessionmgr_adapters.acp.kept_sessions import KeptSession
from sessionmgr_adapters.acp.mode_check import ModeCheck
from sessionmgr_adapters.acp.normalise import begin_turn, close_turn, normalise
from sessionmgr_adapters.acp.opening import AcpSession, SessionOpening
from sessionmgr_adapters.acp.phase import TRANSITIONS, AcpPhase, AcpStep
from sessionmgr_adapters.acp.request_handler import AcpRequestHandler
from sessionmgr_adapters.acp.run_messages import RunMessages
from sessionmgr_adapters.acp.sdk import AcpOutgoing
from sessionmgr_adapters.acp.state import AcpState
from sessionmgr_adapters.acp.updates import AcpUsage, ConfigUpdate, ModeUpdate, StateUpdate
from sessionmgr_adapters.acp.usage import usage_since

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from sessionmgr.adapter import RunContext
    from sessionmgr.model import Event
    from sessionmgr_adapters.acp.kept_sessions import KeptSessions
    from sessionmgr_adapters.acp.opening import AcpRunRequest
    from sessionmgr_adapters.acp.state import AcpTurn
    from sessionmgr_adapters.acp.v1 import AcpCall

TurnEnd: TypeAlias = frames.PromptEnded | StateUpdate | frames.AcpRefusal
"""The end of a turn: of version 1, of version 2, or because the prompt was refused."""
CONTINUE_WAIT: Final = 2.0
"""Seconds to wait, once work in the background has ended, for the agent to continue."""
QUIET: Final = 0.2
"""Seconds without a frame after which a replay has ended."""


class AcpDriver(PhasedConversationRun[AcpOutgoing, AcpFrame, AcpPhase, AcpStep]):
    """One run on a session of an agent over ACP."""

    def __init__(self, run: RunContext, request: AcpRunRequest, kept: KeptSessions) -> None:
        super().__init__(run, TRANSITIONS, AcpPhase.OPENING, lost=AcpStep.LOST)
        self.state: Final = AcpState()
        self.state.is_replaying = run.provider_session_id is not None
        self.failure: Failure | None = None
        """A failure that ends the run, regardless of what the agent reports."""
        self.ended: TurnEnd | None = None
        """The end of the turn, of the last one if there are several."""
        own = None if request.options.fork else run.provider_session_id
        self.session: Final = AcpSession(self.state, own)
        self._request: Final = request
        self._kept: Final = kept
        self._connection: object = None
        self._calls: Final = AcpCalls(self._send)
        self._opening: Final = SessionOpening(run, self._calls, self.session, request)
        self._handler: Final = AcpRequestHandler(
            self, self.state, lambda: self.is_stopping, request.quirks.edit_tools
        )
        self._messages: Final = RunMessages(self)
        self._mode: Final = ModeCheck(run.permission.asked, request)
        self._cancelled: Final[set[str]] = set()
        """The work in the background that was cancelled."""
        self.used = AcpUsage()
        """The usage of the session, of an agent that reports only that."""
        self._received = 0
        """The number of frames."""
        self._has_left_tools = False
        """Whether a cancelled tool may have left processes, which end with the agent's."""
        self._early: list[Event] | None = []
        """Events before the start of the run is reported; None afterwards."""

    @property
    def terms(self) -> Hashable:
        """What a session is opened with: a kept session with other terms cannot be continued."""
        run, request = self.run, self._request
        rest = msgspec.json.encode((request.mcp_servers, request.meta))
        return (run.cwd, run.directories, run.system_prompt, rest)

    def use_connection(self, connection: object) -> None:
        """Use this connection; if the session is open in its process, continue it there."""
        self._connection = connection
        kept = self._kept.take(self.session.id, connection)
        if kept is None:
            return
        if kept.terms != self.terms:
            self._opening.is_stale = True
            return
        normalise(kept.opened, self.state)
        self.session.models, self.state.mode = kept.opened.models, kept.mode
        self.session.first_mode = kept.first_mode
        self.state.cost, self.state.is_replaying = kept.cost, False
        self.used = kept.used
        self._opening.is_open = True

    async def _send(self, message: AcpCall) -> None:
        await self.conversation.send(message)

    # --- start and messages ----------------------------------------------------------------------

    async def begin(self) -> None:
        """Open the session and send the prompt."""
        failure = await self._opening.prepare()
        if failure is None and self.state.is_replaying:
            await self._until_quiet()
        if self.is_over:
            return
        if failure is not None or self.run.cancelling is not None:
            self.failure = failure
            self.take_step(AcpStep.REFUSED)
            return
        self._report_start()
        self.take_step(AcpStep.PROMPT)
        self.state.is_replaying = False
        begin_turn(self.state)
        wire = self._opening.wire
        await self._messages.send_prompt(wire.prompt(self.session.id, self._request.content))

    def _report_start(self) -> None:
        self._mode.start(self.session.mode)
        permission, effective = self.run.permission, f"{self.session.mode} (not confirmed)"
        if self._opening.is_confirmed:
            effective = self._mode.describe(permission.effective)
        started = RunStarted(
            provider_session_id=self.session.id,
            model=self.session.model or self.run.model,
            cwd=self.run.cwd,
            permission=replace(permission, effective=effective),
            cli_version=self._opening.wire.program_version(self._opening.info.agent_version),
        )
        early, self._early = self._early or [], None
        self.emit(started, *early)

    @property
    def has_started(self) -> bool:
        """Whether the start of the run was reported; the prompt is sent next."""
        return self._early is None

    @property
    def _replays_late(self) -> bool:
        """Whether what the session has said so far may come after the answer to its opening."""
        run, request = self.run, self._request
        is_loaded = run.provider_session_id is not None and request.quirks.replays_late
        return is_loaded or request.options.fork

    async def _until_quiet(self) -> None:
        """Wait until the replay of the session has ended: there is no sign of its end."""
        seen = -1
        while seen != self._received and not self.is_over:
            seen = self._received
            await trio.sleep(QUIET)

    async def interrupt(self) -> None:
        """Ask the agent to cancel the turn; frames are handled until it has ended."""
        await trio.lowlevel.checkpoint()
        self._has_left_tools = self._request.quirks.leaves_processes and bool(self.state.calls)
        self.take_step(AcpStep.INTERRUPT)
        if self.phase is AcpPhase.STOPPING and not self.is_over:
            self.state.note_work()  # the next idle state is the end of this turn
            await self.conversation.interrupt()
            # Some agents end the turn only when their open requests are answered.
            await self._handler.cancel_questions()
            await self._cancel_background()

    async def _cancel_background(self) -> None:
        """Cancel the work in the background, as far as the agent allows it."""
        await trio.lowlevel.checkpoint()
        for name, work in self.state.cancellable_work():
            call = self._opening.wire.cancel_background(self.session.id, work)
            if call is not None and name not in self._cancelled:
                self._cancelled.add(name)
                await self._send(call)

    async def add(self, content: str, message_id: str) -> bool:
        """Send another message into the turn, if the agent takes one; otherwise it is a new run."""
        await trio.lowlevel.checkpoint()
        if self.phase is not AcpPhase.RUNNING:
            return False
        wire, session, blocks = self._opening.wire, self.session.id, [text_block(content)]
        if self._opening.info.steers and self.state.turn.end is None:
            return await self._messages.steer(content, message_id, wire.steer(session, blocks))
        if wire.queues_prompts:
            return await self._messages.queue(content, message_id, wire.prompt(session, blocks))
        return False

    # --- frames ----------------------------------------------------------------------------------

    def handle_frames(self, frames: Sequence[AcpFrame]) -> None:
        """Process the frames of one read."""
        events: list[Event] = []
        self._received += len(frames)
        for each in frames:
            frame = self._usual_form(each)
            events += normalise(frame, self.state)
            events += self._handle_frame(frame)
        if self._early is None:
            self.emit(*events, blobs=self.state.images.collect())
        else:
            self._early += events

    def _handle_frame(self, frame: AcpFrame) -> list[Event]:
        """Act on a frame, beside the events that `normalise` returns for it."""
        match frame:
            case frames.PromptEnded():
                self._end_turn(frame)
            case frames.PromptAccepted():
                self._messages.note_prompt(is_heard=True)
                self._end_if_idle()
            case frames.AcpRefusal(method="session/prompt"):
                if self._messages.note_prompt(is_heard=False):
                    self._end_turn(frame)
                self._end_if_idle()
            case frames.SessionUpdate(update=StateUpdate() as update):
                return self._note_state(update)
            case frames.SessionUpdate(update=ModeUpdate() | ConfigUpdate()):
                return self._check_mode()
            case frames.SessionOpened(method=method, models=models):
                if method == "session/new":
                    self.session.first_mode = self.session.mode
                self.session.models, self.state.is_replaying = models, self._replays_late
                self._calls.resolve(frame)
            case frames.SteeringAnswered(outcome=outcome):
                self._messages.note_steering(is_heard=outcome == "injected")
            case frames.AcpRefusal(method="_session/steering"):
                self._messages.note_steering(is_heard=False)
            case frames.Initialized() | frames.OptionsChanged():
                self._calls.resolve(frame)
            case frames.Acknowledged() | frames.AcpRefusal():
                self._calls.resolve(frame)
            case frames.AgentRequest():
                self._handler.handle(frame)
            case frames.RequestCancelled(name=name):
                self._handler.cancel(name)
            case _:
                pass
        return []

    def _end_turn(self, end: TurnEnd) -> None:
        self.ended = end
        self.take_step(AcpStep.TURN_ENDED)

    def _note_state(self, update: StateUpdate) -> list[Event]:
        """Note the state of the agent's work; a turn's failure is an incident if the run goes on.

        Work in the background that begins while the run is cancelled is cancelled, too.
        """
        turn = self.state.turn
        if self.phase is AcpPhase.STOPPING and self.state.background:
            self.start(self._cancel_background)
        self._end_if_idle()
        if turn.end is not update or self.is_over:
            return []
        failure = failure_of_turn(update, self.state)
        return [] if failure is None else [ErrorOccurred(failure=failure)]

    def _end_if_idle(self) -> None:
        """End the run if the agent is idle, and nothing will make it continue."""
        turn = self.state.turn
        if turn.end is not None and turn.has_background_ended and not self.is_stopping:
            self.start(self._end_later, turn)
        else:
            self._end_after(turn)

    async def _end_later(self, turn: AcpTurn) -> None:
        await trio.sleep(CONTINUE_WAIT)
        self._end_after(turn)

    def _end_after(self, turn: AcpTurn) -> None:
        """End the run if a turn is the last one, has ended, and left no work in the background."""
        is_last = turn is self.state.turn and self._messages.are_answered
        if is_last and turn.end is not None and not self.state.background:
            self._end_turn(turn.end)

    def _usual_form(self, frame: AcpFrame) -> AcpFrame:
        """Return a frame as most agents send it."""
        quirks = self._request.quirks
        if quirks.sums_usage and isinstance(frame, frames.PromptEnded) and frame.usage is not None:
            before, self.used = self.used, frame.usage
            return replace(frame, usage=usage_since(before, frame.usage))
        return quirks.read_mode_notice(frame)

    def _check_mode(self) -> list[Event]:
        """End a run whose agent has left the mode that was asked for."""
        if self.phase is not AcpPhase.RUNNING:
            return []
        violation = self._mode.violation_of(self.session.mode)
        if violation is not None:
            self.failure = violation
            self.start(self._stop)
            return [PolicyViolation(rule="permission_mode", detail=violation.message)]
        change = self._mode.change_to(self.session.mode)
        return [] if change is None else [ErrorOccurred(failure=change, severity="warning")]

    async def _stop(self) -> None:
        """Cancel the turn; an agent that does not end it in time is left."""
        await self.interrupt()
        await trio.sleep(self.run.grace)
        self.take_step(AcpStep.REFUSED)

    @property
    def is_stopping(self) -> bool:
        """Whether the turn is being cancelled: requests are then answered as cancelled."""
        return self.phase is not AcpPhase.RUNNING

    @property
    def can_resume(self) -> bool:
        """Whether the agent can continue a session that another process has opened."""
        can = self._opening.info.capabilities
        return can.resume or can.load

    @property
    def is_idle(self) -> bool:
        """Whether the agent was greeted, has no work of this run, and no process of its tools."""
        is_idle = not self.state.has_begun or self.ended is not None
        has_work = self.state.background or self._has_left_tools
        # One that is asked to exit cancels its turn first.
        is_exiting = self._is_cancelled and not self._handler.has_denied and not self.run.cancelling
        is_stuck = has_work or self._calls.is_unresponsive or is_exiting
        return self._opening.is_greeted and is_idle and not is_stuck

    # --- end -------------------------------------------------------------------------------------

    def keeps_session(self) -> bool:
        """Whether the session stays open for the next run: only after the end of a turn."""
        # An agent may report by itself on work that was cancelled.
        has_ended = self.ended is not None and not self._is_lost and not self._cancelled
        return has_ended and self.is_idle and self.failure is None and not self.run.was_silent

    @property
    def _is_lost(self) -> bool:
        """Whether the agent has refused the prompt because it does not know the session."""
        ended = self.ended
        if not isinstance(ended, frames.AcpRefusal):
            return False
        return failure_of_refusal(ended).kind is FailureKind.SESSION_NOT_FOUND

    def on_leave(self) -> None:
        """Emit the events that were held back, and end what the turn has left open."""
        self.emit(*(self._early or ()), *close_turn(self.state), blobs=self.state.images.collect())
        self._messages.end()
        if self.keeps_session():  # before the next run of the session can start
            self._kept.keep(self.session.id, self._kept_session())

    def _kept_session(self) -> KeptSession:
        state, session = self.state, self.session
        opened = frames.SessionOpened(
            method="kept", models=session.models, modes=state.modes, options=state.options
        )
        return KeptSession(
            connection=self._connection,
            conversation=self.conversation,
            terms=self.terms,
            opened=opened,
            mode=session.mode,
            first_mode=session.first_mode,
            cost=state.cost,
            used=self.used,
        )

    @property
    def _is_cancelled(self) -> bool:
        return self._end is not None and self._end.stop_reason == "cancelled"

    @property
    def _end(self) -> frames.PromptEnded | StateUpdate | None:
        """The end of the turn, unless its prompt was refused."""
        return None if isinstance(self.ended, frames.AcpRefusal) else self.ended

    async def finish_run(self) -> None:
        """Report the end of a run that was not cancelled, and whose connection lasted."""
        failure, ended, quirks = self.failure, self.ended, self._request.quirks
        was_denied = self._is_cancelled and self._handler.has_denied  # some end the turn then
        if failure is None and ended is not None and not was_denied:
            answers = quirks.hides_errors and not self._handler.has_denied
            failure = failure_of_turn(ended, self.state, quirks.error_text, answers=answers)
        reason = None if self._end is None else self._end.stop_reason
        if failure is not None:
            await self.run.fail(with_remedy(failure, quirks.login), stop_reason=reason)
        else:
            await self.run.finish(stop_reason=reason)
