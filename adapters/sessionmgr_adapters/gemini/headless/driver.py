"""The driver of a run in a `gemini` process of its own.

A run has succeeded only if the process has reported a result that says so: at a signal Gemini exits
with 0 and reports nothing. Plain text has no result; there the exit code and stderr decide. An
interrupt sends SIGINT, at which Gemini ends at once but leaves its commands running, so the whole
process tree is ended.

Gemini cleans up when it starts: it deletes all sessions of the directory in which it finds no
prompt, also one that another process is just beginning. So the processes of a directory start one
after the other, through a gate: each holds it until Gemini reports the prompt.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio
from msgspec.structs import replace

from sessionmgr.adapter.kit import ChildRun, process_exit_event
from sessionmgr.model import Failure, FailureKind, MessageReceived, MessageStreamed, RunStarted
from sessionmgr.process import Escalation, PrivateFiles
from sessionmgr_adapters.gemini.headless import failures, frames
from sessionmgr_adapters.gemini.headless.launch import IMAGES, SCRATCH, gemini_home, prompt_text
from sessionmgr_adapters.gemini.headless.normalise import HeadlessState, normalise
from sessionmgr_adapters.gemini.headless.plain_text import PlainTextReader, UnsplitDecoder
from sessionmgr_adapters.gemini.headless.session_file import is_unanswered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.adapter import RunContext
    from sessionmgr.adapter.kit import PromptImage
    from sessionmgr.process import ChildTree, ExitReport
    from sessionmgr.wire import Line
    from sessionmgr_adapters.gemini.headless.launch import HeadlessSpec
    from sessionmgr_adapters.gemini.headless.start_gate import StartGate
    from sessionmgr_adapters.gemini.options import GeminiOptions

INTERRUPT_GRACE: Final = 2.0
TERM: Final = 1.0
LINGER: Final = 0.5
EXIT_WAIT: Final = 5.0
"""Seconds between the result and the exit of the process, in which Gemini runs its hooks."""
MESSAGE: Final = "text"
EMPTY: Final = Failure(
    kind=FailureKind.PROVIDER_ERROR,
    message="Gemini printed nothing; its plain text gives no reason",
    retryable=True,
    resumable=True,
    provider_code="empty_reply",
    phase="turn",
)


async def _interrupt(tree: ChildTree) -> None:
    await trio.lowlevel.checkpoint()
    tree.signal(signal.SIGINT)


class HeadlessRun(ChildRun):
    """One run and its process."""

    polite = staticmethod(_interrupt)

    def __init__(
        self,
        run: RunContext,
        spec: HeadlessSpec,
        options: GeminiOptions,
        images: Sequence[PromptImage],
        gate: StartGate,
    ) -> None:
        ladder = Escalation(
            polite=min(INTERRUPT_GRACE, run.grace / 2),
            term=min(TERM, run.grace / 4),
            linger=min(LINGER, run.grace / 8),
        )
        is_text = options.output == "text"
        super().__init__(run, ladder=ladder, decoder=UnsplitDecoder() if is_text else None)
        self.lingers = EXIT_WAIT
        self._spec: Final = spec
        self._options: Final = options
        self._images: Final = images
        self._gate: Final = gate
        self._state: Final = HeadlessState()
        self._retries: Final = failures.RetryReader()
        self._is_text: Final = is_text
        self._text = PlainTextReader()
        self._session = spec.session
        self._failure: Failure | None = None
        """A failure that ends the run, whatever Gemini reports."""

    @property
    def session(self) -> str:
        """Gemini's id of the session."""
        return self._session

    # --- the process -----------------------------------------------------------------------------

    async def execute(self) -> None:
        """Run the prompt and report the end.

        Raises:
            ProcessError: The process could not be started.
        """
        with PrivateFiles() as private:
            for name, text in self._spec.files.items():
                private.write(name, text)
            for directory in (SCRATCH, IMAGES):
                (private.directory / directory).mkdir(mode=0o700)
            images = await self._write_images(private.directory / IMAGES)
            facts = await self._start(self._spec, private.directory, images)
            if await self._has_lost_nothing(facts):
                facts = await self._start(self._spec.renewed(), private.directory, images)
        has_failed = self._state.outcome is None
        self.run.emit_nowait(*self._state.end_message(failed=has_failed))
        if self._text.text:
            self.run.emit_nowait(MessageReceived(content=self._text.text, message_id=MESSAGE))
        self.run.emit_nowait(process_exit_event(facts))
        if self.run.cancelling is not None:
            return
        if self._failure is not None:
            await self.run.fail(self._failure)
        elif self._is_text:
            await self._finish_text(facts)
        else:
            await self._finish(facts)

    async def _start(self, spec: HeadlessSpec, private: Path, images: Sequence[Path]) -> ExitReport:
        self._session = spec.session
        text = prompt_text(self.run.prompt, self._options, images)
        try:
            await self._gate.enter(self)
            return await self.run_child(spec.command(private, images), text)
        finally:
            self._gate.leave(self)

    async def _has_lost_nothing(self, facts: ExitReport) -> bool:
        """Whether the session could not be resumed, but has no answer that would be lost."""
        if self._state.session or not self._spec.is_resumed or self.run.cancelling is not None:
            return False
        failure = failures.missing_outcome_failure(facts, self.tail, has_begun=False)
        is_unknown = failure.kind is FailureKind.SESSION_NOT_FOUND
        return is_unknown and await is_unanswered(gemini_home(self._spec.env), self._session)

    async def _write_images(self, directory: Path) -> list[Path]:
        """Write the images to files with the right suffix, which tells Gemini their type."""
        paths: list[Path] = []
        for number, image in enumerate(self._images):
            path = directory / f"image{number}.{image.media_type.rpartition('/')[2]}"
            await trio.Path(path).write_bytes(image.data)
            paths.append(path)
        return paths

    def on_exit(self, facts: ExitReport) -> None:
        """Delay the exit until the last message is emitted."""

    def handle_lines(self, lines: Sequence[Line]) -> None:
        """Process the lines of one read."""
        if self._is_text:
            self._handle_text(lines)
            return
        decoded = frames.decode_lines(lines)
        if any(isinstance(each, frames.MessageFrame) for each in decoded):
            self._gate.leave(self)  # the prompt is being recorded
        events = [event for frame in decoded for event in normalise(frame, self._state)]
        if events:
            self.run.emit_nowait(*events)
        else:
            self.run.alive()
        if self._state.outcome is not None:
            self.done()

    def _handle_text(self, lines: Sequence[Line]) -> None:
        text = self._text.read(lines)
        if not text:
            self.run.alive()
            return
        self._gate.leave(self)
        if not self._state.session:
            self._state.session = self._session
            started = RunStarted(provider_session_id=self._session, model=self._spec.model)
            self.run.emit_nowait(started)
        self.run.emit_nowait(MessageStreamed(delta=text, message_id=MESSAGE))

    def handle_stderr(self, lines: Sequence[Line]) -> None:
        """Report Gemini's own retries, and stop a process that ignores the run's policy."""
        self.run.alive()
        for line in lines:
            text = line.decode(errors="replace") if isinstance(line, bytes) else ""
            retry = self._retries.read(text)
            if retry is not None:
                self.run.emit_nowait(retry)
            if failures.is_unruled(text):
                self._failure = failures.UNRULED
                self.stop()

    # --- the end ---------------------------------------------------------------------------------

    async def _finish(self, facts: ExitReport) -> None:
        outcome, notice = self._state.outcome, self._state.notice
        has_begun = bool(self._state.session)
        if outcome is None:
            failure = failures.missing_outcome_failure(facts, self.tail, has_begun=has_begun)
            await self.run.fail(failure)
        elif outcome.status == frames.SUCCESS and notice is None:
            await self.run.finish(stop_reason=outcome.status)
        else:
            message = outcome.error.message if outcome.error is not None else notice or ""
            # If it was stopped after its result, the exit code is not Gemini's.
            code = None if facts.forced else facts.exit_code
            failure = failures.error_failure(message, code, self.tail.text())
            await self.run.fail(failure, stop_reason=outcome.status)

    async def _finish_text(self, facts: ExitReport) -> None:
        said = failures.relevant_lines(self.tail.text())
        errors = [each for each in said.splitlines() if each.startswith(failures.ERROR_LINE)]
        if facts.exit_code == 0 and not errors and self._text.text.strip():
            await self.run.finish(stop_reason="exit")
        elif facts.exit_code == 0 and not errors:
            await self.run.fail(EMPTY)
        elif errors:
            message = errors[-1].removeprefix(failures.ERROR_LINE)
            await self.run.fail(failures.error_failure(message, facts.exit_code or None))
        else:
            failure = failures.missing_outcome_failure(facts, self.tail, has_begun=False)
            await self.run.fail(replace(failure, resumable=bool(self._text.text)))
