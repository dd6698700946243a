"""Driver of one run: configures the process, sends the prompt, and reads frames to the end.

`phase.py` defines the life cycle. A run is done when each message has its answer, the agent reports
that it is idle, and no background task is running. `idle` alone is not sufficient, because a shell
in the background does not keep the agent busy; a result alone is not either, because another
message may follow.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.model import ErrorOccurred, MessageStreamed, PolicyViolation
from sessionmgr.wire import NoiseLine
from sessionmgr_adapters.claude.claude_process import mode_failure
from sessionmgr_adapters.claude.claude_run import ClaudeRun
from sessionmgr_adapters.claude.configure import configure
from sessionmgr_adapters.claude.frames import (
    ControlReplyBody,
    ControlReplyFrame,
    HostRequest,
    HostRequestWithdrawn,
    MessageLifecycle,
    ResultFrame,
    StreamEventFrame,
    SystemFrame,
    UserFrame,
)
from sessionmgr_adapters.claude.message_delivery import OutboundMessages
from sessionmgr_adapters.claude.normalise import normalise
from sessionmgr_adapters.claude.outgoing import prompt_syntax_failure
from sessionmgr_adapters.claude.phase import ClaudePhase, ClaudeStep
from sessionmgr_adapters.claude.request_handler import handle_request
from sessionmgr_adapters.claude.session_file import SILENCE, SessionFile, session_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.adapter import RunContext
    from sessionmgr.model import Event, Failure, Json
    from sessionmgr_adapters.claude.claude_process import ClaudeProcess
    from sessionmgr_adapters.claude.claude_run import ClaudeRead
    from sessionmgr_adapters.claude.launch_strategy import LaunchStrategy
    from sessionmgr_adapters.claude.options import ClaudeOptions

IDLE_WAIT: Final = 2.0
"""Seconds to wait, once all messages are answered, for the report that the agent is idle; and, once
a background task has ended, for the agent to continue.
"""


class AgentActivity(Enum):
    """Activity of the agent, as far as it reports it."""

    WORKING = auto()
    TURN_ENDED = auto()
    IDLE = auto()


class ClaudeDriver(ClaudeRun):
    """Driver of one run on one process."""

    def __init__(
        self,
        run: RunContext,
        process: ClaudeProcess,
        options: ClaudeOptions,
        prompt: Json,
        strategy: LaunchStrategy,
        patience: float,
    ) -> None:
        super().__init__(run, process, options)
        self.has_output = False
        """Whether stdout has contained anything but noise."""
        self.result: ResultFrame | None = None
        """The last result."""
        self.failure: Failure | None = None
        """Why the run fails, whatever the agent reports."""
        self._prompt: Final = prompt
        self._strategy: Final = strategy
        self._patience: Final = patience
        self._outbound: Final = OutboundMessages(self)
        self._first_frame: Final = trio.Event()
        """Set when a frame has come after the prompt."""
        self._activity = AgentActivity.WORKING
        self._quiet_scope: trio.CancelScope | None = None
        """Cancel scope of the wait for the agent's last frame."""
        self.reads = 0

    @property
    def has_answered(self) -> bool:
        """Whether a frame has come after the prompt."""
        return self._first_frame.is_set()

    @property
    def is_reusable(self) -> bool:
        """Whether the process may serve another run: it is alive, and nothing is open.

        A process that a tool has started may outlive the interrupt that ends the tool.
        """
        is_cut_short = self.phase is ClaudePhase.STOPPED and self.state.used_tools
        is_waited_for = self.awaits_reply or bool(self.state.tasks) or self._outbound.is_open
        return not (
            is_cut_short or is_waited_for or self.phase in {ClaudePhase.LOST, ClaudePhase.SILENT}
        )

    # --- from the start to the first frame -------------------------------------------------------

    async def begin(self) -> None:
        """Configure the process, send the prompt, and wait for the first frame."""
        self.start(self._watch_file)
        with trio.move_on_after(self._patience) as scope:
            self.failure = await configure(self)
        if scope.cancelled_caught:
            self.take_step(ClaudeStep.GIVE_UP)
            return
        if self.is_over:
            return
        if self.failure is not None or self.run.cancelling is not None:
            self.take_step(ClaudeStep.REFUSE)
            return
        self.emit_notes()
        info = self.process.info
        assert info is not None
        self.state.credential, self.state.version = info.credential, info.version
        self.process.runs += 1
        self.take_step(ClaudeStep.PROMPT)
        await self._outbound.send_prompt(self._prompt)
        with trio.move_on_after(self._patience) as scope:
            await self._first_frame.wait()
        if scope.cancelled_caught:
            self.take_step(ClaudeStep.GIVE_UP)

    def emit_notes(self) -> None:
        """Report how the run got this process, once the process has shown a sign of life."""
        notes = self._strategy.notes
        if notes:
            self.emit(*notes)
            notes.clear()

    def on_leave(self) -> None:
        """Release all tasks that wait for an acknowledgement."""
        self._outbound.close()

    # --- frames ----------------------------------------------------------------------------------

    def handle_frames(self, frames: Sequence[ClaudeRead]) -> None:
        """Handle the frames of one read; there are none while a long line is incomplete."""
        if not frames:
            return
        self._handle_frame()
        if not self.has_output:
            self.has_output = not all(isinstance(each, NoiseLine) for each in frames)
        state = self.state
        events: list[Event] = []
        message, block, name = state.streaming, -1, ""  # the block whose text is streamed
        for frame in frames:
            # Fast path: nearly all frames are pieces of text.
            if (
                type(frame) is StreamEventFrame
                and frame.parent_tool_use_id is None
                and state.started
            ):
                event = frame.event
                if event.delta is not None and event.delta.text:
                    if event.index != block or frame.api_message_id != message:
                        message, block = frame.api_message_id, event.index
                        name = state.streamed_name(frame)
                    events.append(MessageStreamed(delta=event.delta.text, message_id=name))
                    continue
            block = -1
            events += normalise(frame, state)
            if type(frame) is not StreamEventFrame:
                self.emit(*events, blobs=state.images.collect())
                events.clear()
                self._handle_control(frame)
        self.emit(*events)
        if self._outbound.can_release:
            self.start(self._outbound.release)
        self._finish_if_over()

    def _handle_frame(self) -> None:
        self.reads += 1
        if self._first_frame.is_set() or self.phase is ClaudePhase.CONFIGURING:
            return
        self._first_frame.set()
        self.take_step(ClaudeStep.HEAR)

    async def _watch_file(self) -> None:
        """Report tool calls from the session's file while stdout is silent."""
        await trio.lowlevel.checkpoint()
        spec = self.process.spec
        path = session_path(spec.session, spec.command.cwd, spec.command.env)
        if path is None:
            return
        file = SessionFile(path)
        while True:
            reads = self.reads
            await trio.sleep(SILENCE)
            if reads != self.reads or self.phase is ClaudePhase.CONFIGURING:
                continue
            events = [
                each for frame in await file.read_new() for each in normalise(frame, self.state)
            ]
            if events:
                self._handle_frame()
                self.emit(*events, blobs=self.state.images.collect())
                await self.room()

    def _handle_control(self, frame: ClaudeRead) -> None:
        match frame:
            case SystemFrame():
                self._handle_system(frame)
            case MessageLifecycle(command_uuid=name, state=state):
                self._outbound.report(name, state)
            case UserFrame(is_replay=True, uuid=name):
                self._outbound.echo(name)
            case ResultFrame():
                self._end_turn(frame)
            case ControlReplyFrame(response=reply) if self.take_reply(reply):
                pass
            case ControlReplyFrame(response=ControlReplyBody(response={"still_queued": []})):
                self.take_step(ClaudeStep.CONFIRM)
            case HostRequest():
                handle_request(self, frame)
            case HostRequestWithdrawn(request_id=request_id):
                self.requests.withdraw(request_id)
            case _:
                pass

    def _handle_system(self, frame: SystemFrame) -> None:
        if frame.permission_mode is not None:
            self.process.mode = frame.permission_mode
        if frame.subtype == "init":
            self._begin_turn(frame)
        elif frame.subtype != "session_state_changed":
            return
        elif frame.state == "idle":
            self._activity = AgentActivity.IDLE
        else:
            self._record_activity()

    def _begin_turn(self, init: SystemFrame) -> None:
        self._record_activity()
        if self.phase is ClaudePhase.STOPPING:  # older versions continue with queued messages
            self.start(self.conversation.interrupt)
        self._outbound.begin_turn(init.capabilities)
        wide = mode_failure(self.run.permission.effective, init.permission_mode)
        if wide is not None and self.failure is None:
            self.failure = wide
            self.emit(PolicyViolation(rule="permission_mode", detail=wide.message))
            self.start(self.interrupt)

    def _end_turn(self, result: ResultFrame) -> None:
        self._activity = AgentActivity.TURN_ENDED
        self.result = result
        self._outbound.end_turn(result)
        failure = self.state.failure
        if failure is not None and self._outbound.is_open:
            # The run continues, so the failure is reported as an incident.
            self.emit(ErrorOccurred(failure=failure))

    # --- the end ---------------------------------------------------------------------------------

    def _record_activity(self) -> None:
        self._activity = AgentActivity.WORKING
        self.take_step(ClaudeStep.WORK)
        self._end_wait_for_quiet()

    def _finish_if_over(self) -> None:
        if self.is_over or self.phase is ClaudePhase.CONFIGURING or self._outbound.is_open:
            return
        # An agent that is idle for certain ends the run; one that has ended its turn, or its last
        # task, but does not report that it is idle, ends it after a time of silence.
        has_tasks = bool(self.state.tasks)
        if self._is_complete(has_tasks=has_tasks):
            self.take_step(ClaudeStep.SETTLE)
        elif has_tasks:
            self.take_step(ClaudeStep.TASKS)
        if self._activity is not AgentActivity.WORKING and not has_tasks:
            self._wait_for_quiet()

    def _is_complete(self, *, has_tasks: bool) -> bool:
        is_idle = self._activity is AgentActivity.IDLE
        match self.phase:
            case ClaudePhase.STOPPING:
                return is_idle
            case ClaudePhase.ENDING:
                return is_idle or (self._activity is AgentActivity.TURN_ENDED and not has_tasks)
            case _:
                return is_idle and self.result is not None and not has_tasks

    def _wait_for_quiet(self) -> None:
        if self._quiet_scope is None and not self.is_over:
            self._quiet_scope = trio.CancelScope()
            self.start(self._end_when_quiet, self._quiet_scope)

    async def _end_when_quiet(self, scope: trio.CancelScope) -> None:
        """Give the agent some time to report that it is idle, or to react to the end of a task."""
        with scope:
            await trio.sleep(IDLE_WAIT)
        if self._quiet_scope is scope:
            self._quiet_scope = None
            if not (self._outbound.is_open or self.state.tasks):
                self.take_step(ClaudeStep.QUIET)

    def _end_wait_for_quiet(self) -> None:
        if self._quiet_scope is not None:
            self._quiet_scope.cancel()
            self._quiet_scope = None

    async def interrupt(self) -> None:
        """Ask the agent to end its turn; its frames show when the turn has ended."""
        self._outbound.refuse_held()
        self.take_step(ClaudeStep.INTERRUPT)
        if self.is_over:
            await trio.lowlevel.checkpoint()
            return
        await self.conversation.interrupt()
        self._finish_if_over()

    # --- follow-ups ------------------------------------------------------------------------------

    async def add(self, content: str, message_id: str) -> bool:
        """Offer another message; return whether it belongs to this run now."""
        await trio.lowlevel.checkpoint()
        if self.is_over or self.phase in {
            ClaudePhase.CONFIGURING,
            ClaudePhase.STOPPING,
            ClaudePhase.ENDING,
        }:
            return False
        is_text = not self.options.slash_commands
        if is_text and prompt_syntax_failure(content, self.process.version) is not None:
            return False  # it becomes a run of its own, which fails with the reason
        self._end_wait_for_quiet()
        return await self._outbound.add(content, message_id)
