"""The verb `watch`: show a run of another process as `run` shows its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.cli.errors import CommandLineInvalid
from sessionmgr.cli.lookup import add_batch_flag, resolve_id
from sessionmgr.cli.open_questions import expiry_of, what_it_wants
from sessionmgr.cli.queries import ALIVE, fold_run, live_leases, read_session_runs, with_store
from sessionmgr.cli.suggested_command import suggested_command
from sessionmgr.cli.terminal.console import make_console
from sessionmgr.cli.terminal.follow_run import NOT_COMPLETED, exit_code, next_steps
from sessionmgr.cli.terminal.format_time import format_clock
from sessionmgr.cli.terminal.render_events import (
    RunNoteLine,
    RunRenderer,
    describe_result,
    describe_tool,
)
from sessionmgr.cli.terminal.signals import INTERRUPTED
from sessionmgr.cli.terminal.stdout import print_note
from sessionmgr.cli.terminal.table import format_labelled, terminal_width
from sessionmgr.model import (
    ToolApprovalGranted,
    ToolApprovalRequested,
    decode_event,
    decode_run,
    encode_event,
    parse_timestamp,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from sessionmgr.cli.config.configuration import Configuration
    from sessionmgr.cli.terminal.render_events import RunText
    from sessionmgr.model import AnyEvent
    from sessionmgr.store import Store, StoredRun

HELP: Final = """\
Show a run that another process owns, from its beginning to its end, as sessionmgr run
shows its own: the agent's text on stdout, tool calls and open questions on stderr; with
--json, the events. A session or a batch job stands for its running run, else for its
last one; later runs of a session follow. The exit code is that of the run. Ctrl-C stops
watching; the run continues.

  sessionmgr watch ses_3k9w
  sessionmgr watch core-11 --batch runs/night"""

PAGE: Final = 500
LOOK_AGAIN: Final = 3.0
"""Seconds without an event after which the run's process is checked."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the id."""
    parser.add_argument("id", metavar="ID", help="session, run or job")
    add_batch_flag(parser)


def run(args: argparse.Namespace) -> int:
    """Show the run and return its exit code."""
    return with_store(args, _watch)


async def _watch(args: argparse.Namespace, store: Store) -> int:
    kind, id = await resolve_id(store, args.id, "session", "run", batch=args.batch, is_on=True)
    code = INTERRUPTED
    following: StoredRun | None
    following = await store.run(id) if kind == "run" else await _run_of(store, id)
    while following is not None:
        run = following
        watcher = Watcher(store, run, args)
        try:
            code = await watcher.show()
        except KeyboardInterrupt:
            if not watcher.is_over:
                configuration: Configuration = args.configuration
                print_note(f"stopped watching; {run.run_id} continues")
                print_note(f"to end it: {suggested_command(configuration, 'cancel', run.run_id)}")
            return INTERRUPTED
        following = await _after(store, run) if kind == "session" else None
    return code


async def _run_of(store: Store, session_id: str) -> StoredRun:
    """Return a session's running run, or else its last one.

    Raises:
        CommandLineInvalid: The session has no run.
    """
    runs = await read_session_runs(store, session_id)
    if not runs:
        raise CommandLineInvalid(f"watch: the session {session_id} has no run")
    alive = [each for each in runs if each.status in ALIVE]
    return next((each for each in alive if each.status == "running"), (alive or runs)[-1])


async def _after(store: Store, run: StoredRun) -> StoredRun | None:
    """Return the session's next run, if it has not ended."""
    runs = await read_session_runs(store, run.session_id, statuses=ALIVE)
    return next((each for each in runs if each.run_id != run.run_id), None)


class Watcher:
    """Viewer of one run in the store."""

    def __init__(self, store: Store, run: StoredRun, args: argparse.Namespace) -> None:
        loudness = 0 if args.quiet or args.json else 1 + args.verbose
        self._store: Final = store
        self._run = run
        self._as_json: Final[bool] = args.json
        self._configuration: Final[Configuration] = args.configuration
        self._screen: Final = make_console(loudness=loudness, text=not args.json)
        self._renderer: Final = RunRenderer()
        self._after = (run.first_seq or 1) - 1
        self._shown: Final = set[str]()
        """The ids of the questions that were shown."""

    @property
    def is_over(self) -> bool:
        """Whether the run has ended."""
        return self._run.status not in ALIVE

    async def show(self) -> int:
        """Show the run until it ends, and return its exit code."""
        while True:
            # The status is read before the events: events can follow a status, but never an end.
            self._run = await self._store.run(self._run.run_id)
            is_held = self.is_over or await self._is_held()
            await self._show_new()
            if self.is_over:
                return await self._close()
            if not is_held:
                await self._screen.end_line()
                print_note(
                    f"the process that owned {self._run.run_id} has ended, and the run with it"
                )
                print_note("the next sessionmgr run, batch or resume on this store records its end")
                return NOT_COMPLETED
            with trio.move_on_after(LOOK_AGAIN):
                await self._store.wait(self._run.session_id, after=self._after)

    async def _is_held(self) -> bool:
        session_id = self._run.session_id
        return session_id in await live_leases(self._store, session_id)

    async def _show_new(self) -> None:
        """Show the events that are new since the last call."""
        more = True
        while more:
            page = await self._store.events(
                self._run.session_id, after=self._after, run_id=self._run.run_id, limit=PAGE
            )
            events = [decode_event(row.body) for row in page.rows]
            if self._as_json:
                for event in events:
                    await self._screen.write_line(encode_event(event))
            else:
                await self._screen.write(await self._render(events))
            self._after, more = page.last, page.more

    async def _render(self, events: Sequence[AnyEvent]) -> list[RunText | RunNoteLine]:
        still_open: tuple[str, ...] = ()
        if any(isinstance(event, ToolApprovalRequested) for event in events):
            still_open = decode_run((await self._store.run(self._run.run_id)).body).open_approvals
        pieces: list[RunText | RunNoteLine] = []
        for event in events:
            match event:
                case ToolApprovalRequested() if event.approval_id in still_open:
                    self._shown.add(event.approval_id)
                    pieces += _question(event)
                case ToolApprovalGranted(by="caller") if event.approval_id in self._shown:
                    what = describe_tool(event.tool_name, event.tool_input)
                    pieces.append(RunNoteLine(f"✓ allowed: {what}"))
                case _:
                    pieces += self._renderer.render(event)
        return pieces

    async def _close(self) -> int:
        """Show the end of the run, and return its exit code."""
        await self._screen.end_line()
        result = (await fold_run(self._store, self._run)).result()
        await self._screen.write(
            [describe_result(result), *next_steps(result, self._configuration)]
        )
        return exit_code(result)


def _question(event: ToolApprovalRequested) -> list[RunNoteLine]:
    """Describe an open question, and how to answer it."""
    until = expiry_of(event)
    limit = "" if until is None else f" (until {format_clock(until, parse_timestamp(event.at))})"
    why = f" ({event.reason})" if event.reason else ""
    answer = f"  to answer: sessionmgr approve {event.approval_id} allow|deny{limit}"
    wants = format_labelled(
        "?", f"asks for {what_it_wants(event)}{why}", indent=2, width=terminal_width()
    )
    return [RunNoteLine(line, "warning") for line in (*wants, answer)]
