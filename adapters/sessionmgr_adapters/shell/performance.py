"""One command on its way, from its start to the end of all that came of it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.adapter.kit.exit_failure import exit_failure, process_exited
from sessionmgr.model import (
    Cause,
    ErrorOccurred,
    Failure,
    FailureKind,
    MessageReceived,
    MessageStreamed,
    OutputReceived,
    ToolCallCompleted,
    ToolCallFailed,
)
from sessionmgr.process import Pump
from sessionmgr.process.facts import ExitFacts
from sessionmgr.process.ladder import Ladder, end_tree, open_tree
from sessionmgr_adapters.shell.output import Output, Pieces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.adapter import RunContext
    from sessionmgr.model import Event, Json
    from sessionmgr.model.event.tool import ToolCallEnded
    from sessionmgr.process import Command, Tail
    from sessionmgr.process.launcher import ChildTree
    from sessionmgr.wire import Line

TOOL: Final = "bash"
LAST_WORDS: Final = 0.5
"""Seconds for what a dead command's children still have to say through its pipes."""
_TERM: Final = 2.0
_LINGER: Final = 0.5


class Performance:
    """Plays one command. Whatever becomes of it, what it said until then is told."""

    def __init__(self, run: RunContext, tool_input: Json, success: Sequence[int]) -> None:
        self.tool_call_id: Final = f"{run.run_id}.1"
        self.facts: ExitFacts | None = None
        self._tree: ChildTree | None = None
        self._is_to_end = False
        self._has_exited = False
        self._run: Final = run
        self._tool_input: Final = tool_input
        self._success: Final = frozenset(success)
        self._out = Output()
        self._err = Output()
        self._ladder: Final = Ladder(
            polite=0, term=min(_TERM, run.grace / 2), linger=min(_LINGER, run.grace / 8)
        )
        self._pump: Final = Pump(
            self._take,
            take_error=self._take_error,
            room=run.room,
            decoder=Pieces(),
            grace=LAST_WORDS,
        )

    @property
    def tail(self) -> Tail:
        """The end of what it complained."""
        return self._pump.tail

    @property
    def went_well(self) -> bool:
        """Whether it ended by itself, and as it should."""
        return (
            self._run.cancelling is None
            and self.facts is not None
            and self.facts.exit_code in self._success
        )

    async def play(self, command: Command, limit: float | None) -> None:
        """Run the command until nothing of it is left, for `limit` seconds, and tell how it went.

        It begins when that is on record, and not at all if it is to end by then.

        Raises:
            ProcessError: It could not be started.
        """
        tree: ChildTree | None = None
        try:
            await self._run.recorded()
            if self._must_end():
                self._tell_not_started()
                return
            async with open_tree(self._run.launcher, command, ladder=self._ladder) as tree:
                self._tree = tree
                if self._must_end():
                    await end_tree(tree, self._ladder)
                ended = partial(self._wait_exit, tree, limit, trio.current_time())
                await self._pump.run(
                    stdin=tree.stdin, stdout=tree.stdout, stderr=tree.stderr, exited=ended
                )
                if not self._has_exited:  # it closed both of its pipes, and lives on
                    await ended()
        except trio.Cancelled:
            if tree is None:
                self._tell_not_started()
            raise
        finally:
            if tree is not None:
                await self._see_it_over(tree)  # shielded in there, and over  # noqa: ASYNC102

    def _must_end(self) -> bool:
        return self._is_to_end  # it may change during each wait

    def _tell_not_started(self) -> None:
        self._run.emit_nowait(self._ended(ToolCallFailed, "it was not started"))

    async def _see_it_over(self, tree: ChildTree) -> None:
        with trio.CancelScope(shield=True):  # it is over: this does not wait
            self.facts = await tree.wait_empty()
            self._tell_the_end(self.facts)

    async def end(self) -> None:
        """Have the command end: TERM, then KILL; `play` goes on reading meanwhile."""
        self._is_to_end = True
        await trio.lowlevel.checkpoint()
        if self._tree is not None:
            await end_tree(self._tree, self._ladder)

    async def _wait_exit(self, tree: ChildTree, limit: float | None, begun: float) -> None:
        """Wait for the command's end, and have it end when its time is over."""
        if limit is not None:
            with trio.move_on_at(begun + limit):
                await tree.wait_exit()
                self._has_exited = True
                return
            self._run.time_out(f"the command took longer than its timeout of {limit:g} s")
        await tree.wait_exit()
        self._has_exited = True

    # --- what it says ----------------------------------------------------------------------------

    def _take(self, lines: Sequence[Line]) -> None:
        self._stream("".join(self._out.take(each) for each in lines if isinstance(each, bytes)))

    def _stream(self, text: str) -> None:
        if text:
            self._run.emit_nowait(MessageStreamed(delta=text, message_id=self.tool_call_id))
        else:
            self._run.alive()

    def _take_error(self, lines: Sequence[Line]) -> None:
        text = "".join(self._err.take(each + b"\n") for each in lines if isinstance(each, bytes))
        if text:
            self._run.emit_nowait(OutputReceived(stream="stderr", text=text))
        else:
            self._run.alive()

    def _tell_the_end(self, facts: ExitFacts) -> None:
        if rest := self._out.close():
            self._stream(rest)
        events: list[Event] = [
            _left_out(name, output.left_out)
            for name, output in (("stdout", self._out), ("stderr", self._err))
            if output.left_out
        ]
        tool_output: Json = {
            "exit_code": facts.exit_code,
            "signal": facts.signal,
            "stderr": self._pump.tail.text(self._run.redact),
        }
        events.append(
            self._ended(ToolCallCompleted if self.went_well else ToolCallFailed, tool_output)
        )
        failure = self._failure(facts)
        if failure is not None:
            events.append(ErrorOccurred(failure=failure))
        events += [
            MessageReceived(content=self._out.text(), message_id=self.tool_call_id),
            process_exited(facts),
        ]
        self._run.emit_nowait(*events)

    def _failure(self, facts: ExitFacts) -> Failure | None:
        """Return what went wrong, unless that somebody wanted it to end."""
        stop = self._run.cancelling
        if stop is None:
            return None if self.went_well else exit_failure(facts, self._pump.tail)
        if stop.cause is Cause.DEADLINE:
            return Failure(kind=FailureKind.TIMED_OUT, message=stop.detail or stop.cause.value)
        return None

    def _ended(self, how: type[ToolCallEnded], tool_output: Json) -> ToolCallEnded:
        return how(
            tool_call_id=self.tool_call_id,
            tool_name=TOOL,
            tool_input=self._tool_input,
            tool_output=tool_output,
        )


def _left_out(name: str, count: int) -> ErrorOccurred:
    failure = Failure(
        kind=FailureKind.PROVIDER_ERROR,
        message=f"{name} grew past what is kept: the last {count} bytes are left out",
        phase="turn",
    )
    return ErrorOccurred(failure=failure, severity="warning")
