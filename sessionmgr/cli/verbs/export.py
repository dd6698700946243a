"""The verb `export`: print a session with all its records as JSON lines."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.cli.lookup import add_batch_flag, resolve_id
from sessionmgr.cli.queries import fold_run, read_session_runs, with_store
from sessionmgr.cli.terminal.stdout import flush_stdout, print_json_line
from sessionmgr.model import ImageReceived, decode_event, encode_json
from sessionmgr.store import UnknownId

if TYPE_CHECKING:
    import argparse

    from sessionmgr.model import Json
    from sessionmgr.store import Store

HELP: Final = """\
Print a session with the results of its runs, all stored events, snapshots and images
(base64) as JSON lines. Each line is an object with one key: session, run, event,
snapshot or blob. The id of a run exports its session.

  sessionmgr export ses_3k9w > session.jsonl"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the id."""
    parser.add_argument("id", metavar="ID", help="session, run or job")
    add_batch_flag(parser)


def run(args: argparse.Namespace) -> int:
    """Print the session and return the exit code."""
    return with_store(args, _export)


async def _export(args: argparse.Namespace, store: Store) -> int:
    kind, id = await resolve_id(store, args.id, "session", "run", batch=args.batch)
    session_id = (await store.run(id)).session_id if kind == "run" else id
    _print_line("session", (await store.session(session_id)).body)
    for stored in await read_session_runs(store, session_id):
        _print_line("run", encode_json((await fold_run(store, stored)).result()))
    blobs = await _export_events(store, session_id)
    for snapshot in await store.snapshots(session_id):
        _print_line("snapshot", snapshot.body)
    for sha256 in blobs:
        await _export_blob(store, sha256)
    return 0


async def _export_events(store: Store, session_id: str) -> list[str]:
    """Print the events; return the names of the blobs that they refer to."""
    blobs: dict[str, None] = {}
    after, more = 0, True
    while more:
        page = await store.events(session_id, after=after)
        for row in page.rows:
            _print_line("event", row.body, flush=False)
            if row.type == "image_received":
                event = decode_event(row.body)
                if isinstance(event, ImageReceived):
                    blobs[event.blob] = None
        flush_stdout()
        after, more = page.last, page.more
    return list(blobs)


async def _export_blob(store: Store, sha256: str) -> None:
    try:
        data: str | None = b64encode(await store.blob(sha256)).decode()
    except UnknownId:
        data = None  # an event names the blob, and it was never stored
    blob: dict[str, Json] = {"sha256": sha256, "base64": data}
    _print_line("blob", encode_json(blob))


def _print_line(kind: str, body: bytes, *, flush: bool = True) -> None:
    """Print a line; by default, flush it before the store is read again."""
    print_json_line(msgspec.json.encode({kind: msgspec.Raw(body)}))
    if flush:
        flush_stdout()
