"""Detects and describes changes of a job since it was run."""

from __future__ import annotations

import shlex
from glob import escape
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.batch.job import work
from sessionmgr.batch.problems import Problem
from sessionmgr.model import encode_json

if TYPE_CHECKING:
    from sessionmgr.batch.job import Job
    from sessionmgr.batch.ledger import Entered, Known

# Fields that messages may show; variables and options may be secrets.
_SHOWN: Final = frozenset("prompt provider model effort cwd permission_mode system_prompt".split())
_WIDTH: Final = 40


def is_same_work(known: Known, entered: Entered) -> bool:
    """Whether a job's work is the same as before."""
    # Older versions digested all fields; the digests of the work fields are still valid.
    same = known.fingerprint == entered.fingerprint
    return same or work(known.digests) == work(entered.digests)


def change(where: str, known: Known, entered: Entered, before: Job) -> Problem:
    """Describe how a job's work has changed since it completed."""
    was, now = work(known.digests), work(entered.digests)
    fields = sorted(name for name in was.keys() | now.keys() if was.get(name) != now.get(name))
    said = [
        f"{name} was {_short(getattr(before, name))} and is {_short(getattr(entered.job, name))}"
        for name in fields
        if name in _SHOWN
    ]
    what = f" ({', '.join(said)})" if said else ""
    return Problem(
        where,
        ", ".join(fields),
        f"job {before.id!r} has changed since it was run{what}; change it back, give it another"
        f" id, or run it again (--force --only {shlex.quote(escape(before.id))})",
    )


def _short(value: object) -> str:
    text = encode_json(msgspec.to_builtins(value)).decode()
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
