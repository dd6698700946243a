"""A batch, shown as it goes on, to its end: progress, failures as they come, Ctrl-C, the table."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.cli.closing_table import Failures, closing_lines
from sessionmgr.cli.logs import LOGGER
from sessionmgr.cli.outlet import outlet
from sessionmgr.cli.output import ReaderGoneError, drop_stdout
from sessionmgr.cli.safe_text import one_line
from sessionmgr.cli.scoreboard import Scoreboard, log_shown_on
from sessionmgr.cli.showing import COMPLETED, NOBODY_READS, NOT_COMPLETED
from sessionmgr.cli.stopping import INTERRUPTED, Stopping, called
from sessionmgr.cli.telling import why_it_ended
from sessionmgr.errors import SessionmgrError
from sessionmgr.model import RunStatus, encode_json

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from sessionmgr.batch import Batch, JobResult


class BatchShow:
    """Shows one batch; `again` is what to type to go on with it."""

    def __init__(
        self, args: argparse.Namespace, *, again: list[str], out: Path | None, stored: bool = True
    ) -> None:
        self._args: Final = args
        self._again: Final = again
        self._out: Final = out
        self._stored: Final = stored
        self._scoreboard: Final = Scoreboard(sys.stderr, quiet=args.quiet)
        self._screen: Final = outlet(loudness=0)
        self._failures: Final = Failures()
        self._scope: Final = trio.CancelScope()
        self._batch: Batch | None = None
        self._stopping: Final = Stopping(self._ask_to_stop, self._last_words)

    async def play(self, batch: Batch) -> int:
        """Enter the batch, show it to its end, and return the exit code.

        Raises:
            JobsInvalid: Some jobs cannot be done.
        """
        error: SessionmgrError | None = None
        async with trio.open_nursery() as nursery:
            await nursery.start(self._stopping.watch)
            nursery.start_soon(self._scoreboard.show, batch.progress)
            with log_shown_on(self._scoreboard, LOGGER, sys.stderr):
                try:
                    with self._scope:
                        await self._follow(batch)
                except SessionmgrError as found:  # raised bare, not as the nursery's
                    error = found
            nursery.cancel_scope.cancel()
        await self._scoreboard.clear()
        if error is not None:
            raise error
        return await self._close(batch)

    async def _follow(self, batch: Batch) -> None:
        async with batch:
            self._batch = batch
            for warning in batch.warnings:
                self._scoreboard.say(f"warning: {one_line(warning)}", "warning")
            try:
                async for result in batch:
                    await self._take(result)
            except ReaderGoneError:
                drop_stdout()
                batch.stop(NOBODY_READS)
                await batch.wait()

    async def _take(self, result: JobResult) -> None:
        if result.status is not RunStatus.COMPLETED:
            self._failures.take(result)
        if result.status not in {RunStatus.COMPLETED, RunStatus.CANCELLED}:
            status = result.status.replace("_", " ")
            said = f"✗ {one_line(result.job)} {status}: {why_it_ended(result)}"
            self._scoreboard.say(said, "bad")
        if self._args.json:
            await self._screen.put_line(encode_json(result))

    async def _close(self, batch: Batch) -> int:
        """Say what came of it all."""
        if self._batch is None:
            return INTERRUPTED  # before anything was started
        summary = batch.summary()
        well = self._all_is_well(batch)
        if not (self._args.quiet and well):
            lines = closing_lines(
                summary,
                self._failures,
                width=_width(),
                again=self._again,
                out=self._out,
                stored=self._stored,
            )
            for text, tone in lines:
                self._scoreboard.say(text, tone)
            await self._scoreboard.clear()
        if self._stopping.asked_by is not None and not summary.all_completed:
            return INTERRUPTED
        return COMPLETED if well else NOT_COMPLETED

    def _all_is_well(self, batch: Batch) -> bool:
        """Say whether all has completed that was to be done this time."""
        summary = batch.summary()
        if summary.all_completed:
            return True
        if summary.stopped is not None or summary.providers_stopped:
            return False
        chosen = self._args.limit is not None or self._args.only or self._args.skip
        return bool(chosen) and not (self._failures.count or self._failures.cancelled)

    def _ask_to_stop(self, signal_name: str) -> None:
        name = called(signal_name)
        if self._batch is None:
            self._scope.cancel()
            return
        self._batch.stop(name)
        on = self._batch.progress().running
        self._scoreboard.say(f"{name}: ending what runs ({on}); once more: at once", "warning")

    def _last_words(self) -> str:
        again = shlex.join(["sessionmgr", *self._again])
        return f"\nsessionmgr: stopped at once; to go on: {again}\n"


def _width() -> int | None:
    try:
        return os.get_terminal_size(2).columns
    except OSError:
        return None
