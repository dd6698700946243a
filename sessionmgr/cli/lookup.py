"""Lookup of sessions, runs and batch jobs by full or shortened ids."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.cli.errors import CommandLineInvalid, NameAmbiguous
from sessionmgr.cli.queries import (
    ALIVE,
    decode_session,
    first_prompt,
    live_leases,
    observed_status,
    waits_for_answer,
)
from sessionmgr.cli.terminal.format_time import format_ago
from sessionmgr.cli.terminal.safe_text import one_line, truncate
from sessionmgr.model import format_timestamp
from sessionmgr.store import AmbiguousId, UnknownId

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from sessionmgr.model import Session
    from sessionmgr.store import Kind, Store, StoredRun, StoredSession

PAGE: Final = 500
WORDS: Final = 40
"""Number of characters of a prompt that identify a session."""
MORE: Final = "…"
_PREFIXES: Final = {"session": "ses_", "run": "run_", "snapshot": "snp_"}


class JobReference(msgspec.Struct, frozen=True):
    """Reference from a session to the batch and the job that opened it."""

    job: str
    batch: str
    out: Path | None
    """The batch's directory; older records do not have it."""


def add_batch_flag(parser: argparse.ArgumentParser) -> None:
    """Add `--batch`, which names the batch to look a job's id up in."""
    parser.add_argument(
        "--batch",
        metavar="OUT",
        help="directory of the batch, if ID is a job (default: the only batch with it)",
    )


def job_of_session(session: Session) -> JobReference | None:
    """Return the batch job that a session was opened for, if any."""
    job, batch, out = (session.metadata.get(name) for name in ("job", "batch", "out"))
    if not isinstance(job, str) or not isinstance(batch, str):
        return None
    return JobReference(job, batch, Path(out) if isinstance(out, str) else None)


async def resolve_id(
    store: Store, text: str, *kinds: Kind, batch: str | None = None, is_on: bool = False
) -> tuple[Kind, str]:
    """Resolve a typed name to its kind and its full id.

    A name is an id, the beginning of an id with or without the part before the underscore, or the
    id of a batch job, which stands for the job's last session. An exact job id wins over ids
    that begin with it. With `is_on`, a running run is preferred if several batches have the job.

    Raises:
        UnknownId: No id matches.
        NameAmbiguous: Several ids match; the error lists them.
    """
    found = await _by_id(store, text, kinds)
    is_id = text.startswith(tuple(_PREFIXES.values()))
    if "session" in kinds and not (is_id and found):
        jobs = await _by_job(store, text, batch)
        if len(jobs) > 1 and is_on:
            jobs = [each for each in jobs if await _has_run_on(store, each)] or jobs
        if len(jobs) == 1:
            return "session", jobs[0].session_id
        if jobs:
            said = [await _describe_job_session(store, each) for each in jobs]
            raise NameAmbiguous(f"{len(jobs)} batches have a job {text!r}", said, _AMONG_BATCHES)
    if not found or not text:
        *first, last = kinds if is_id or "session" not in kinds else (*kinds, "job")
        unknown = UnknownId(f"{', '.join(first)} or {last}" if first else last, text)
        unknown.args = (f"{unknown}; sessionmgr sessions lists the known ones",)
        raise unknown
    if len(found) > 1:
        said = [await _describe_id(store, kind, id) for id, kind in found.items()]
        raise NameAmbiguous(f"several ids begin with {text!r}", said, "type more of the id")
    ((id, kind),) = found.items()
    return kind, id


_AMONG_BATCHES: Final = "use a session id, or add --batch OUT"


async def _by_id(store: Store, text: str, kinds: Sequence[Kind]) -> dict[str, Kind]:
    found: dict[str, Kind] = {}
    for kind in kinds:
        prefix = text if text.startswith(_PREFIXES[kind]) else _PREFIXES[kind] + text
        if not text or ("_" in text and prefix != text):
            continue
        try:
            found[await store.resolve(prefix, kind)] = kind
        except AmbiguousId as error:
            found.update(dict.fromkeys(error.candidates, kind))
        except UnknownId:
            continue
    return found


# --- jobs ----------------------------------------------------------------------------------------


async def _by_job(store: Store, job: str, out: str | None) -> list[StoredSession]:
    """Return the last session of a job in each batch that has it, newest first."""
    wanted = None if out is None else _batch_in(out)
    found: dict[str, StoredSession] = {}
    for stored in await _sessions_with_word(store, job):
        of = job_of_session(decode_session(stored.body))
        if of is not None and of.job == job and wanted in {None, of.batch}:
            found.setdefault(of.batch, stored)
    if wanted is not None and not found:
        raise CommandLineInvalid(f"--batch {out}: no stored session of a job {job!r} in this batch")
    return list(found.values())


def _batch_in(out: str) -> str:
    from sessionmgr.batch import batch_id  # imported late: most commands need no batches

    batch = batch_id(out)
    if batch is None:
        raise CommandLineInvalid(
            f"--batch {out}: this directory contains no batch; "
            "sessionmgr batches lists the known ones"
        )
    return batch


async def _sessions_with_word(store: Store, word: str) -> list[StoredSession]:
    """Return the sessions whose record contains a word, newest first."""
    sign = msgspec.json.encode(word)
    found: list[StoredSession] = []
    cursor: int | None = None
    while True:
        page = await store.sessions(limit=PAGE, cursor=cursor)
        # Decoding every record would take ten times as long.
        found += [each for each in page.rows if sign in each.body]
        cursor = page.cursor
        if cursor is None:
            return found


async def _has_run_on(store: Store, stored: StoredSession) -> bool:
    page = await store.runs(session_id=stored.session_id, statuses=ALIVE, limit=1)
    return bool(page.rows)


# --- ambiguous ids -------------------------------------------------------------------------------


async def _describe_job_session(store: Store, stored: StoredSession) -> str:
    of = job_of_session(decode_session(stored.body))
    assert of is not None
    where = str(of.out) if of.out is not None else f"batch {of.batch}"
    return f"{await _describe_session(store, stored, whole=True)}, {where}"


async def _describe_id(store: Store, kind: Kind, id: str) -> str:
    """Describe in one line what an id stands for."""
    if id == MORE:
        return MORE
    if kind == "session":
        return await _describe_session(store, await store.session(id))
    if kind == "run":
        run = await store.run(id)
        held = run.session_id in await live_leases(store, run.session_id)
        prompt = await first_prompt(store, run.session_id, run_id=id)
        return _line(id, "run", _status(run, held=held), run.ended, prompt)
    snapshot = await store.snapshot(id)
    return _line(id, "snapshot", f"of {snapshot.run_id}", snapshot.at, None)


async def _describe_session(store: Store, stored: StoredSession, *, whole: bool = False) -> str:
    id = stored.session_id
    page = await store.runs(session_id=id, limit=1)
    held = id in await live_leases(store, id)
    last = page.rows[0] if page.rows else None
    status = stored.state if last is None else _status(last, held=held)
    prompt = None if whole else await first_prompt(store, id)
    return _line(id, "session", status, stored.created, prompt)


def _status(run: StoredRun, *, held: bool) -> str:
    return observed_status(run.status, held=held, asks=waits_for_answer(run))


def _line(id: str, kind: str, status: str, at: int | None, prompt: str | None) -> str:
    when = "" if at is None else format_ago(format_timestamp(at / 1000), time.time())
    words = "" if not prompt else f'"{truncate(one_line(prompt), WORDS)}"'
    return f"{id}: {', '.join(filter(None, (kind, status, when, words)))}"
