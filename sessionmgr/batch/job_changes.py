"""Detects and describes changes of a job since it was run."""

from __future__ import annotations

import shlex
from glob import escape
from itertools import takewhile
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.batch.job import work_digests
from sessionmgr.batch.problems import Problem
from sessionmgr.model import encode_json

if TYPE_CHECKING:
    from sessionmgr.batch.job import Job
    from sessionmgr.batch.ledger import JobEntry, KnownJob
    from sessionmgr.model import Json

# Fields that messages may show; variables and options may be secrets.
_SHOWN: Final = frozenset("prompt provider model effort cwd permission_mode system_prompt".split())
_WIDTH: Final = 40
"""Maximum number of characters shown of a text."""
_BEFORE: Final = 11
"""Number of characters shown before the first difference."""


def is_same_work(known: KnownJob, entered: JobEntry) -> bool:
    """Return whether a job's work is the same as before."""
    # Older versions digested all fields; the digests of the work fields are still valid.
    same = known.fingerprint == entered.fingerprint
    return same or work_digests(known.digests) == work_digests(entered.digests)


def describe_change(where: str, known: KnownJob, entered: JobEntry, before: Job) -> Problem:
    """Describe how a job's work has changed since it completed."""
    was, now = work_digests(known.digests), work_digests(entered.digests)
    fields = sorted(name for name in was.keys() | now.keys() if was.get(name) != now.get(name))
    pairs = {
        name: short_difference(getattr(before, name), getattr(entered.job, name))
        for name in fields
        if name in _SHOWN
    }
    said = [f"{name} was {old} and is {new}" for name, (old, new) in pairs.items()]
    what = f" ({', '.join(said)})" if said else ""
    return Problem(
        where,
        ", ".join(fields),
        f"job {before.id!r} has changed since it was run{what}; change it back, give it another"
        f" id, or run it again (--force --only {shlex.quote(escape(before.id))})",
    )


def short_difference(before: object, after: object) -> tuple[str, str]:
    """Return two values in short form; texts begin shortly before their first difference."""
    values: list[Json] = [msgspec.to_builtins(each) for each in (before, after)]
    texts = [each for each in values if isinstance(each, str)]
    start = 0
    if len(texts) == len(values) and any(len(text) > _WIDTH for text in texts):
        pairs = takewhile(lambda pair: pair[0] == pair[1], zip(*texts, strict=False))
        start = max(0, sum(1 for _ in pairs) - _BEFORE)
    was, now = (_short(each, start) for each in values)
    return was, now


def _short(value: Json, start: int) -> str:
    if not isinstance(value, str):
        return encode_json(value).decode()
    text = encode_json(value[start : start + _WIDTH]).decode()[1:-1]
    more = len(value) > start + _WIDTH
    return f'"{"…" if start else ""}{text}{"…" if more else ""}"'
