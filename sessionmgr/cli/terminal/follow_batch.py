"""A batch in the terminal that runs it: progress, failures, Ctrl-C and the final report."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.batch import job_denials
from sessionmgr.cli.log_setup import LOGGER
from sessionmgr.cli.suggested_command import suggested_command
from sessionmgr.cli.terminal.batch_report import (
    CONTINUE_HINT,
    DETAILS_HINT,
    FailureTable,
    denial_lines,
    describe_denial,
    report_lines,
)
from sessionmgr.cli.terminal.console import make_console
from sessionmgr.cli.terminal.follow_run import COMPLETED, NOBODY_READS, NOT_COMPLETED
from sessionmgr.cli.terminal.format import pluralize
from sessionmgr.cli.terminal.progress_display import ProgressDisplay, redirect_log
from sessionmgr.cli.terminal.render_events import end_reason
from sessionmgr.cli.terminal.safe_text import escaped_json, one_line
from sessionmgr.cli.terminal.signals import INTERRUPTED, SignalWatcher, signal_label
from sessionmgr.cli.terminal.stdout import ReaderGoneError, drop_stdout
from sessionmgr.errors import SessionmgrError
from sessionmgr.model import RunStatus, encode_json

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from sessionmgr.batch import Batch, JobResult
    from sessionmgr.cli.config.configuration import Configuration


class BatchFollower:
    """Shows one batch.

    `hints` are commands and files to look at afterwards, with `CONTINUE_HINT` among them; `partial`
    says that some jobs are not selected, `stored` that the runs can be shown later.
    """

    def __init__(
        self,
        args: argparse.Namespace,
        *,
        hints: Mapping[str, str],
        partial: bool = False,
        stored: bool = True,
    ) -> None:
        self._quiet: Final[bool] = args.quiet
        self._as_json: Final[bool] = args.json
        self._configuration: Final[Configuration] = args.configuration
        self._hints: Final = hints
        self._partial: Final = partial
        self._stored: Final = stored
        self._display: Final = ProgressDisplay(sys.stderr, quiet=self._quiet)
        self._screen: Final = make_console(loudness=0)
        self._failures: Final = FailureTable()
        self._scope: Final = trio.CancelScope()
        self._printing: Final = trio.CancelScope()
        self._batch: Batch | None = None
        self._is_stopped = self._denials_shown = False
        self._stopping: Final = SignalWatcher(self._ask_to_stop, self._final_hints)

    def print_above(self, text: str) -> None:
        """Print lines above the progress."""
        for line in text.splitlines():
            self._display.print_line(line)

    async def follow(self, batch: Batch) -> int:
        """Enter the batch, show it until it ends, and return the exit code.

        Raises:
            JobsInvalid: Some jobs are invalid.
        """
        error: SessionmgrError | None = None
        async with trio.open_nursery() as nursery:
            await nursery.start(self._stopping.watch)
            nursery.start_soon(self._display.show, batch.progress)
            nursery.start_soon(
                self._stopping.cancel_stuck_output, self._print_report, self._printing
            )
            with redirect_log(self._display, LOGGER, sys.stderr):
                try:
                    with self._scope:
                        await self._read_results(batch)
                except (
                    SessionmgrError
                ) as found:  # raised bare, without the nursery's exception group
                    error = found
            nursery.cancel_scope.cancel()
        await self._clear()
        if error is not None:
            raise error
        return await self._print_summary(batch)

    async def _print_report(self) -> None:
        if self._batch is not None:
            await self._batch.wait()

    async def _clear(self) -> None:
        with self._stopping.final_output_scope():
            await self._display.clear()

    async def _read_results(self, batch: Batch) -> None:
        async with batch:
            self._batch = batch
            for warning in batch.warnings:
                self._display.print_line(f"warning: {one_line(warning)}", "warning")
            try:
                with self._printing:
                    async for result in batch:
                        await self._add_result(result)
            except ReaderGoneError:
                drop_stdout()
                self._is_stopped = True
                batch.stop(NOBODY_READS)
                await batch.wait()

    async def _add_result(self, result: JobResult) -> None:
        job, status = one_line(result.job), result.status.replace("_", " ")
        if result.status is RunStatus.COMPLETED:
            if result.attempt > 1 and not self._quiet:
                self._display.print_line(f"✓ {job} completed on attempt {result.attempt}", "good")
        else:
            stopped = result.status is RunStatus.CANCELLED and self._is_stopped
            self._failures.add(result, stopped=stopped)
            if not stopped:
                why = end_reason(result)
                self._display.print_line(f"✗ {job} {status}" + (f": {why}" if why else ""), "bad")
        for denial in job_denials(result):
            self._denials_shown = True
            self._display.print_line(f"! {job} was denied {describe_denial(denial)}", "warning")
        if self._as_json:
            await self._print(encode_json(result))

    async def _print(self, line: bytes) -> None:
        if self._display.is_live and sys.stdout is not None and sys.stdout.isatty():
            self._display.print_line(
                escaped_json(line.decode())
            )  # a live display lets it scroll by above
        else:
            await self._screen.write_line(line)

    async def _print_summary(self, batch: Batch) -> int:
        """Print the result of the batch."""
        if self._batch is None:
            return INTERRUPTED  # before any job was started
        summary = batch.summary()
        well = self._has_succeeded(batch)
        if self._quiet and well:
            if not self._denials_shown:  # the denials are those of an earlier command
                for text, tone in denial_lines(summary, width=_width()):
                    self._display.print_line(text, tone)
        else:
            hints = {**self._hints}
            if self._stored and self._failures.last_run is not None:
                run, job = self._failures.last_run
                typed = suggested_command(self._configuration, "show", run)
                hints[f"{DETAILS_HINT} ({one_line(job)})"] = typed
            lines = report_lines(summary, self._failures, width=_width(), hints=hints)
            for text, tone in lines:
                self._display.print_line(text, tone)
        await self._clear()
        if self._stopping.asked_by is not None and not summary.all_completed:
            return INTERRUPTED
        return COMPLETED if well else NOT_COMPLETED

    def _has_succeeded(self, batch: Batch) -> bool:
        """Return whether all selected jobs have completed."""
        summary = batch.summary()
        if summary.all_completed:
            return True
        if summary.stopped is not None or summary.providers_stopped:
            return False
        return self._partial and not (self._failures.count or self._failures.stopped)

    def _ask_to_stop(self, signal_name: str) -> None:
        name = signal_label(signal_name)
        if self._batch is None:
            self._scope.cancel()
            return
        self._is_stopped = True
        self._batch.stop(name)
        self._display.print_line(stopping_message(name, self._batch.progress().running), "warning")

    def _final_hints(self) -> str:
        again = (
            f"; to continue: {self._hints[CONTINUE_HINT]}" if CONTINUE_HINT in self._hints else ""
        )
        return f"\nsessionmgr: stopped at once{again}\n"


def stopping_message(name: str, running: int) -> str:
    """Return the message for a signal that asks a batch to stop."""
    if not running:
        return f"{name}: stopping"
    which = "it" if running == 1 else "them"
    return (
        f"{name}: stopping {pluralize(running, 'running job')}; press Ctrl-C again to kill {which}"
    )


def _width() -> int | None:
    try:
        return os.get_terminal_size(2).columns
    except OSError:
        return None
