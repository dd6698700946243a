"""Driver of one run: a command from its start to the end of its process tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.adapter.kit import ChildPhase, ChildRun, exit_failure, process_exit_event
from sessionmgr.model import (
    EndCause,
    ErrorOccurred,
    Failure,
    FailureKind,
    MessageReceived,
    MessageStreamed,
    OutputReceived,
    ToolCallCompleted,
    ToolCallFailed,
)
from sessionmgr.process import Escalation
from sessionmgr_adapters.shell.normalise import OutputStream, PassThroughDecoder, truncation_warning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.adapter import RunContext
    from sessionmgr.model import Event, Json, ToolCallEnded
    from sessionmgr.process import Command, ExitReport
    from sessionmgr.wire import Line

TOOL: Final = "bash"
OUTPUT_DRAIN_TIME: Final = 0.5
"""Seconds of silence to wait for output of the command's children after it has exited."""
_TERM: Final = 2.0
_LINGER: Final = 0.5


class ShellRun(ChildRun):
    """Run of one command. All output that was read is emitted, also if the run is cancelled."""

    lingers = None  # a command may close its output and continue

    def __init__(self, run: RunContext, success: Sequence[int]) -> None:
        ladder = Escalation(
            polite=0, term=min(_TERM, run.grace / 2), linger=min(_LINGER, run.grace / 8)
        )
        super().__init__(
            run, ladder=ladder, cut=ladder, decoder=PassThroughDecoder(), grace=OUTPUT_DRAIN_TIME
        )
        self.tool_call_id: Final = f"{run.run_id}.1"
        self.tool_input: Final[Json] = {"command": run.prompt}
        self._success: Final = frozenset(success)
        self._out = OutputStream()
        self._err = OutputStream()

    def succeeded(self, facts: ExitReport) -> bool:
        """Whether the command exited by itself with a code that counts as success."""
        return self.run.cancelling is None and facts.exit_code in self._success

    async def run_command(self, command: Command, limit: float | None) -> ExitReport | None:
        """Run the command once its start is stored, unless the run was stopped before.

        Raises:
            ProcessError: The command could not be started.
        """
        try:
            await self.run.recorded()
            if self.phase is ChildPhase.READY:
                return await self.run_child(command, limit=limit)
            self._emit_not_started()
        except trio.Cancelled:
            if self.phase in {ChildPhase.READY, ChildPhase.CALLED_OFF}:
                self._emit_not_started()
            raise
        return None

    def _emit_not_started(self) -> None:
        self.run.emit_nowait(self.tool_ended(ToolCallFailed, "it was not started"))

    # --- output ----------------------------------------------------------------------------------

    def handle_lines(self, lines: Sequence[Line]) -> None:
        """Emit output on stdout as it was written."""
        self._stream("".join(self._out.feed(each) for each in lines if isinstance(each, bytes)))

    def _stream(self, text: str) -> None:
        if text:
            self.run.emit_nowait(MessageStreamed(delta=text, message_id=self.tool_call_id))
        else:
            self.run.alive()

    def handle_stderr(self, lines: Sequence[Line]) -> None:
        """Emit output on stderr."""
        text = "".join(self._err.feed(each + b"\n") for each in lines if isinstance(each, bytes))
        if text:
            self.run.emit_nowait(OutputReceived(stream="stderr", text=text))
        else:
            self.run.alive()

    # --- the end ---------------------------------------------------------------------------------

    def on_exit(self, facts: ExitReport) -> None:
        """Report the exit, and emit all output once more as one message."""
        if rest := self._out.close():
            self._stream(rest)
        events: list[Event] = [
            truncation_warning(name, output.left_out)
            for name, output in (("stdout", self._out), ("stderr", self._err))
            if output.left_out
        ]
        tool_output: Json = {
            "exit_code": facts.exit_code,
            "signal": facts.signal,
            "stderr": self.tail.text(self.run.redact),
        }
        how = ToolCallCompleted if self.succeeded(facts) else ToolCallFailed
        events.append(self.tool_ended(how, tool_output))
        failure = self._failure(facts)
        if failure is not None:
            events.append(ErrorOccurred(failure=failure))
        events += [
            MessageReceived(content=self._out.text(), message_id=self.tool_call_id),
            process_exit_event(facts),
        ]
        self.run.emit_nowait(*events)

    def _failure(self, facts: ExitReport) -> Failure | None:
        """Return the failure of a command, unless its run was stopped by another cause."""
        stop = self.run.cancelling
        if stop is None:
            return None if self.succeeded(facts) else exit_failure(facts, self.tail)
        if stop.cause is EndCause.DEADLINE:
            return Failure(kind=FailureKind.TIMED_OUT, message=stop.detail or stop.cause.value)
        return None

    def tool_ended(self, how: type[ToolCallEnded], tool_output: Json) -> ToolCallEnded:
        """Return the event that ends the command as a tool call."""
        return how(
            tool_call_id=self.tool_call_id,
            tool_name=TOOL,
            tool_input=self.tool_input,
            tool_output=tool_output,
        )
