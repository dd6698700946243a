"""Base class of a run that is one child process.

The run is over when the child has exited and its pipes are closed. `stop` ends it, first by
`polite`, if the subclass defines it; a child that has sent its last message (`done`), or has closed
its output, has `lingers` seconds to exit. In every case `on_exit` receives the exit report once the
process tree is empty. `TRANSITIONS` is the table of its phases.

    class EchoRun(ChildRun):
        def handle_lines(self, lines: Sequence[Line]) -> None:
            self.run.emit_nowait(*(event for line in lines for event in normalise(line)))

    async def run(self, run: RunContext) -> None:
        child = EchoRun(run)
        command = Command(argv=("echo-agent",), cwd=run.cwd, env=run.env)
        with self.active_runs(run, child):  # see `RunAdapter`
            facts = await child.run_child(command)
        ...  # run.finish() or run.fail(exit_failure(facts, child.tail))
"""

from __future__ import annotations

import math
from enum import StrEnum, auto
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.adapter.kit.run_end import process_exit_event
from sessionmgr.adapter.kit.stdio_child import HURRIED_ESCALATION, LAST_MOMENTS
from sessionmgr.process import Escalation, PipePump, end_tree, open_tree
from sessionmgr.trio_util_types import AsyncValue

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from sessionmgr.adapter import RunContext
    from sessionmgr.process import ChildTree, Command, ExitReport, StderrTail
    from sessionmgr.wire import Line, LineDecoder

LADDER: Final = Escalation(polite=2.0, term=2.0)
GRACE: Final = 2.0
"""Seconds of silence to wait for output of the child's own children after it has exited."""


class ChildPhase(StrEnum):
    """Phase of a run's child process."""

    READY = auto()
    """No child was started."""
    CALLED_OFF = auto()
    """The run was stopped before a child was started."""
    RUNNING = auto()
    FINISHING = auto()
    """The child has sent its last message, or has closed its output, and has `lingers` seconds to
    exit.
    """
    STOPPING = auto()
    """The run was stopped, and the child is being ended."""
    EXITED = auto()
    """The child has exited. Another one may be started."""
    STOPPED = auto()
    """The run was stopped, and the child has exited."""


class ChildStep(StrEnum):
    """Step from one phase to another."""

    START = auto()
    """A child was started."""
    FINISH = auto()
    """The child sends its last message, or closes its output."""
    STOP = auto()
    EXIT = auto()
    """The process tree of the child is empty."""


# A stopped run stays stopped: if a child is started all the same, it is ended at once.
TRANSITIONS: Final[dict[ChildPhase, dict[ChildStep, ChildPhase]]] = {
    ChildPhase.READY: {ChildStep.START: ChildPhase.RUNNING, ChildStep.STOP: ChildPhase.CALLED_OFF},
    ChildPhase.CALLED_OFF: {
        ChildStep.START: ChildPhase.STOPPING,
        ChildStep.STOP: ChildPhase.CALLED_OFF,
    },
    ChildPhase.RUNNING: {
        ChildStep.FINISH: ChildPhase.FINISHING,
        ChildStep.STOP: ChildPhase.STOPPING,
        ChildStep.EXIT: ChildPhase.EXITED,
    },
    ChildPhase.FINISHING: {
        ChildStep.FINISH: ChildPhase.FINISHING,
        ChildStep.STOP: ChildPhase.STOPPING,
        ChildStep.EXIT: ChildPhase.EXITED,
    },
    ChildPhase.STOPPING: {
        ChildStep.FINISH: ChildPhase.STOPPING,
        ChildStep.STOP: ChildPhase.STOPPING,
        ChildStep.EXIT: ChildPhase.STOPPED,
    },
    ChildPhase.EXITED: {ChildStep.START: ChildPhase.RUNNING, ChildStep.STOP: ChildPhase.STOPPED},
    ChildPhase.STOPPED: {ChildStep.START: ChildPhase.STOPPING, ChildStep.STOP: ChildPhase.STOPPED},
}


class ChildRun:
    """Base class of a run that is one child process. A subclass implements `handle_lines`."""

    polite: Callable[[ChildTree], Awaitable[None]] | None = None
    """Asks the child to end in its own protocol."""
    lingers: float | None = LAST_MOMENTS
    """Seconds for the child to exit after its last message or the end of its output; None if it
    may close its output and continue."""

    def __init__(
        self,
        run: RunContext,
        *,
        ladder: Escalation = LADDER,
        cut: Escalation = HURRIED_ESCALATION,
        decoder: LineDecoder | None = None,
        grace: float = GRACE,
    ) -> None:
        self.run: Final = run
        self._ladder: Final = ladder
        self._cut: Final = cut
        self._decoder: Final = decoder
        self._grace: Final = grace
        self._phase: Final = AsyncValue(ChildPhase.READY)
        self._pump = self._make_pump()

    def _make_pump(self) -> PipePump:
        return PipePump(
            self.handle_lines,
            take_error=self.handle_stderr,
            room=self.run.room,
            decoder=self._decoder,
            grace=self._grace,
        )

    # --- what a subclass implements --------------------------------------------------------------

    def handle_lines(self, lines: Sequence[Line]) -> None:
        """Handle the lines of one read; none are a sign of life. It must not wait."""
        raise NotImplementedError

    def on_started(self) -> None:
        """Handle the start of the child: emit `RunStarted` if its output does not report that."""
        return

    def handle_stderr(self, lines: Sequence[Line]) -> None:
        """Handle lines of stderr, the last of which `tail` keeps in any case."""
        self.run.alive()

    def on_exit(self, facts: ExitReport) -> None:
        """Report how the child exited, also if the run was cancelled."""
        self.run.emit_nowait(process_exit_event(facts))

    # --- state -----------------------------------------------------------------------------------

    @property
    def tail(self) -> StderrTail:
        """The last lines that the child wrote to stderr."""
        return self._pump.tail

    @property
    def phase(self) -> ChildPhase:
        """The current phase."""
        return self._phase.value

    def stop(self) -> None:
        """End the child; `run_child` reads until it has exited."""
        self._step(ChildStep.STOP)

    async def interrupt(self) -> None:
        """End the child: `run_child` reads until it has exited."""
        self.stop()
        await trio.lowlevel.checkpoint()

    async def add(self, content: str, message_id: str) -> bool:
        """Return False: a child accepts no further messages."""
        await trio.lowlevel.checkpoint()
        return False

    def done(self) -> None:
        """Note that the child has sent its last message, and is about to exit."""
        self._step(ChildStep.FINISH)

    async def run_child(
        self, command: Command, text: bytes = b"", *, limit: float | None = None
    ) -> ExitReport:
        """Run a child until it exits, with `text` as its input, and return how it exited.

        The run times out after `limit` seconds. You can call it again, for instance if the child
        found a file locked.

        Raises:
            ProcessError: The child could not be started.
        """
        self._pump = self._make_pump()
        tree: ChildTree | None = None
        facts: ExitReport | None = None
        try:
            async with open_tree(self.run.launcher, command, escalation=self._cut) as tree:
                self._step(ChildStep.START)
                self.on_started()
                await self._serve(tree, text, limit)
        finally:
            if tree is not None:
                with trio.CancelScope(shield=True):  # the tree is empty: this does not wait
                    facts = await tree.wait_empty()
                    self._step(ChildStep.EXIT)
                    self.on_exit(facts)
        assert facts is not None
        return facts

    def _step(self, step: ChildStep) -> None:
        self._phase.value = TRANSITIONS[self.phase][step]

    async def _serve(self, tree: ChildTree, text: bytes, limit: float | None) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._end_in_time, tree)
            nursery.start_soon(self._finish_after_task, self._pump.stdout_ended)
            if limit is not None:
                nursery.start_soon(self._watch, limit, tree)
            if text:
                self._pump.outbox.send(text)
            self._pump.outbox.close()
            await self._pump.run(
                stdin=tree.stdin, stdout=tree.stdout, stderr=tree.stderr, exited=tree.wait_exit
            )
            await tree.wait_exit()  # it may have closed its pipes and continue
            nursery.cancel_scope.cancel()

    async def _finish_after_task(self, event: trio.Event) -> None:
        await event.wait()
        self.done()

    async def _end_in_time(self, tree: ChildTree) -> None:
        await self._phase.wait(lambda phase: phase is not ChildPhase.RUNNING)
        with trio.move_on_after(math.inf if self.lingers is None else self.lingers):
            await self._phase.wait(lambda phase: phase is ChildPhase.STOPPING)
        await end_tree(tree, self._ladder, self.polite)

    async def _watch(self, limit: float, tree: ChildTree) -> None:
        with trio.move_on_after(limit):
            await tree.wait_exit()
            return
        self.run.time_out(f"the command took longer than its timeout of {limit:g} s")
