"""The driver of a run in a `codex exec` process of its own.

The run is over when the process has reported its end and exited. A process that reports its end and
does not exit is stopped; one that exits without a report has failed, whatever its exit code. A
cancel sends SIGINT, at which Codex stops its commands and leaves its thread fit to be resumed; a
process that does not exit then is killed with all its descendants.
"""

from __future__ import annotations

import signal
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio
from msgspec.structs import replace

from sessionmgr.adapter.kit import ChildRun, exit_failure, process_exit_event
from sessionmgr.model import Failure, FailureKind, Fidelity, MessageReceived
from sessionmgr.process import Escalation, PrivateFiles
from sessionmgr_adapters.codex import failures
from sessionmgr_adapters.codex.driver import finish_by_last_turn
from sessionmgr_adapters.codex.exec.frames import clean_message, decode_lines
from sessionmgr_adapters.codex.exec.launch import ANSWER, PROFILE
from sessionmgr_adapters.codex.exec.normalise import ExecState, normalise
from sessionmgr_adapters.codex.exec.profile import linked_profile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.adapter import RunContext
    from sessionmgr.model import Permission
    from sessionmgr.process import ChildTree, Command, ExitReport
    from sessionmgr.wire import Line
    from sessionmgr_adapters.codex.exec.launch import ExecSpec
    from sessionmgr_adapters.codex.exec.normalise import ThreadMeters

INTERRUPT_GRACE: Final = 2.0
TERM: Final = 1.0
LINGER: Final = 0.5
EXIT_WAIT: Final = 3.0
"""Seconds between the reported end and the exit of the process."""
LARGEST_ANSWER: Final = 16 * 1024 * 1024
MESSAGE: Final = "answer"


async def _interrupt(tree: ChildTree) -> None:
    await trio.lowlevel.checkpoint()
    tree.signal(signal.SIGINT)


class ExecRun(ChildRun):
    """One run and its process."""

    polite = staticmethod(_interrupt)

    def __init__(self, run: RunContext, spec: ExecSpec, meters: ThreadMeters) -> None:
        ladder = Escalation(
            polite=min(INTERRUPT_GRACE, run.grace / 2),
            term=min(TERM, run.grace / 4),
            linger=min(LINGER, run.grace / 8),
        )
        super().__init__(run, ladder=ladder)
        self.lingers = EXIT_WAIT
        self._spec: Final = spec
        self._meters: Final = meters
        self._state: Final = ExecState(_without_questions(run.permission, spec), run.model)

    @property
    def thread(self) -> str:
        """The run's thread, or "" before it is known."""
        return self._state.thread

    def handle_lines(self, lines: Sequence[Line]) -> None:
        """Process the lines of one read."""
        events = [event for frame in decode_lines(lines) for event in normalise(frame, self._state)]
        if events:
            self.run.emit_nowait(*events)
        else:
            self.run.alive()
        if self._state.last_turn is not None:
            self.done()

    def on_exit(self, facts: ExitReport) -> None:
        """Delay the exit until the answer is emitted, or the process is started again."""

    async def execute(self) -> None:
        """Run the prompt and report the end.

        Raises:
            ProcessError: The process could not be started.
        """
        with PrivateFiles() as files, ExitStack() as links:
            paths = {name: files.write(name, text) for name, text in self._spec.files.items()}
            named = {name: str(path) for name, path in paths.items()}
            for name, image in self._spec.links.items():
                link = files.directory / name
                link.symlink_to(image)
                named[name] = str(link)
            profile = None
            if PROFILE in paths:
                profile = links.enter_context(linked_profile(self._spec.home, paths[PROFILE]))
            facts = await self._start(self._spec.command(named, profile))
            self._emit_answer(paths[ANSWER])
        self._record_usage()
        self.run.emit_nowait(process_exit_event(facts))
        if self.run.cancelling is None:
            await self._finish(facts)

    async def _start(self, command: Command) -> ExitReport:
        """Start the process, again if its home was not complete yet; return its exit report."""
        tries = 1
        while True:
            facts = await self.run_child(command, self.run.prompt.encode(errors="replace"))
            is_lost = not self.thread and failures.lost_start_race(self.tail.text(), tries)
            if not is_lost or self.run.cancelling is not None:
                return facts
            self.run.emit_nowait(failures.start_retry_event(tries))
            await trio.sleep(failures.retry_delay(tries))
            tries += 1

    # --- the end ---------------------------------------------------------------------------------

    def _emit_answer(self, file: Path) -> None:
        """Emit the answer from its file if it was not emitted: its frame may have been lost."""
        if file.stat().st_size > LARGEST_ANSWER:
            return
        text = file.read_text(encoding="utf-8", errors="replace")
        if text.strip() and text.rstrip() != self._state.text.rstrip():
            self._state.text = text
            self.run.emit_nowait(MessageReceived(content=text, message_id=MESSAGE))

    def _record_usage(self) -> None:
        thread, last = self.thread, self._state.last_turn
        if not thread:
            return
        if self._spec.thread is None:
            self._meters.begin(thread)
        if last is not None and last.usage is not None:
            spent = self._meters.record_usage(thread, last.usage)
            if spent is not None:
                self.run.emit_nowait(spent)

    async def _finish(self, facts: ExitReport) -> None:
        if self._state.last_turn is None:
            await self.run.fail(self._state.failure or self._exit_failure(facts))
        else:
            await finish_by_last_turn(self.run, self._state.last_turn.turn, self._state)

    def _exit_failure(self, facts: ExitReport) -> Failure:
        """Return the failure of a process that exited without reporting an end."""
        has_begun = bool(self.thread)
        failure = exit_failure(facts, self.tail, phase="turn" if has_begun else "start")
        said = self.tail.text()
        kind = None if self._state.is_turning else failures.stderr_failure_kind(said)
        if kind is None:
            return failures.without_directories(
                replace(failure, retryable=True, resumable=has_begun)
            )
        failure = replace(failure, kind=kind, message=clean_message(said) or failure.message)
        is_passing = kind is FailureKind.SESSION_BUSY
        return failures.without_directories(replace(failure, phase="start", retryable=is_passing))


def _without_questions(asked: Permission, spec: ExecSpec) -> Permission | None:
    """Return the permission in force in modes that would ask: this process cannot ask."""
    effective = f"never, {spec.sandbox}"
    if effective == asked.effective:
        return None
    return replace(asked, effective=effective, fidelity=Fidelity.NARROWER)
