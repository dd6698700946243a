"""The verb `events`: print stored events of a session or a run, and follow new ones."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.cli.lookup import add_batch_flag, resolve_id
from sessionmgr.cli.parser import did_you_mean
from sessionmgr.cli.queries import ALIVE, live_leases, with_store
from sessionmgr.cli.terminal.event_line import event_line, text_width
from sessionmgr.cli.terminal.stdout import flush_stdout, print_json_line, print_line, print_note
from sessionmgr.cli.terminal.streamed_lines import StreamedLines
from sessionmgr.cli.terminal.table import terminal_width
from sessionmgr.model import EVENT_TYPES, decode_event

if TYPE_CHECKING:
    from sessionmgr.model import AnyEvent
    from sessionmgr.store import EventRow, Store

HELP: Final = """\
Print the events of a session or of a run, one per line; with --json as they are stored
(sessionmgr schema event). Each event has a number; --after N skips those up to N.
Pieces of streamed text are joined into lines, except with --json.

  sessionmgr events run_7hq2 --follow
  sessionmgr events ses_3k9w --after 120 --type tool_call_started --json"""

PAGE: Final = 500
LOOK_AGAIN: Final = 3.0
"""Seconds without an event after which the owner of the run is checked."""
LAST_WORDS: Final = 1.0
"""Seconds after a run's end in which the exit of its process may still be recorded."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the id and the filters."""
    parser.add_argument("id", metavar="ID", help="session, run or job")
    add_batch_flag(parser)
    parser.add_argument(
        "-f",
        "--follow",
        action="store_true",
        help="also print new events, until the run ends (default: stored events only)",
    )
    parser.add_argument(
        "--after",
        type=_number,
        default=0,
        metavar="SEQ",
        help="skip the events up to this number (default: 0)",
    )
    parser.add_argument(
        "--type",
        action="append",
        type=_event_type,
        metavar="TYPE",
        dest="types",
        help="only events of this type; may be repeated (default: all)",
    )


def _number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected the number of an event, got {text!r}")
    return int(text)


def _event_type(text: str) -> str:
    if text not in EVENT_TYPES:
        hint = did_you_mean(text, EVENT_TYPES) or "; see sessionmgr schema event"
        raise argparse.ArgumentTypeError(f"unknown type of event {text!r}{hint}")
    return text


def run(args: argparse.Namespace) -> int:
    """Print the events and return the exit code."""
    return with_store(args, _print)


async def _print(args: argparse.Namespace, store: Store) -> int:
    kind, id = await resolve_id(store, args.id, "session", "run", batch=args.batch)
    run_id = id if kind == "run" else None
    session_id = (await store.run(id)).session_id if run_id else id
    reader = EventPrinter(store, session_id, run_id, args)
    await reader.read_all()
    if args.follow:
        await reader.follow()
    reader.end_line()
    return 0


class EventPrinter:
    """Printer of the events of one session, or of one run in it."""

    def __init__(
        self, store: Store, session_id: str, run_id: str | None, args: argparse.Namespace
    ) -> None:
        self._store: Final = store
        self._session_id: Final = session_id
        self._run_id: Final = run_id
        self._types: Final[list[str] | None] = args.types
        self._as_json: Final[bool] = args.json
        self._after: int = args.after
        self._lines: Final = StreamedLines(text_width(terminal_width()))

    async def read_all(self) -> None:
        """Print the stored events."""
        more = True
        while more:
            page = await self._store.events(
                self._session_id,
                after=self._after,
                run_id=self._run_id,
                types=self._types,
                limit=PAGE,
            )
            self._print(page.rows)
            self._after, more = page.last, page.more

    async def follow(self) -> None:
        """Print new events until the run ends or its owner is gone."""
        was_on = False
        while not await self._is_over():
            if not await self._has_owner() and not await self._is_over():
                await self.read_all()
                print_note("the process that owned the run is gone; no more events")
                return
            was_on = True
            with trio.move_on_after(LOOK_AGAIN) as silence:
                await self._store.wait(self._session_id, after=self._after)
            await self.read_all()
            if silence.cancelled_caught:
                self.end_line()
        if was_on:
            with trio.move_on_after(LAST_WORDS):
                await self._store.wait(self._session_id, after=self._after)
        await self.read_all()

    async def _is_over(self) -> bool:
        if self._run_id is not None:
            return (await self._store.run(self._run_id)).status not in ALIVE
        return (await self._store.session(self._session_id)).state == "closed"

    async def _has_owner(self) -> bool:
        return self._session_id in await live_leases(self._store, self._session_id)

    def _print(self, rows: tuple[EventRow, ...]) -> None:
        for row in rows:
            if self._as_json:
                print_json_line(row.body)
            else:
                self._print_lines(self._lines.feed(decode_event(row.body)))
        flush_stdout()

    def end_line(self) -> None:
        """Print the incomplete line: no further piece is expected soon."""
        self._print_lines(self._lines.flush())
        flush_stdout()

    def _print_lines(self, events: list[AnyEvent]) -> None:
        now, width = time.time(), terminal_width()
        for event in events:
            print_line(event_line(event, now, width), flush=False)
