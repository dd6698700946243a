"""Secrets, kept out of what is stored.

What is looked for: the values of a child's secret variables, as they are and as they look inside
JSON, and inside JSON within JSON (a tool's output often is); and whatever has the shape of a
well-known key. Most records hold nothing of the kind, and a few searches for fixed bytes find that
out in a fraction of the time that the pattern takes; only the rest is given to the pattern.

Each record is looked at for itself: a secret that a provider streams in pieces, a piece an event,
is found in the whole message that follows and not in the pieces.

A value is used as a secret if it has at least 8 characters, at least 4 different ones, and cannot
be mistaken for an everyday word or number: one of letters alone needs 16 characters, one of
digits alone 12. Shorter ones would tear holes into everything that is said.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, cast

import msgspec
from msgspec.structs import replace

from sessionmgr.store.row import Append, EventRow, LedgerRow, RunRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

REDACTED: Final = "[redacted]"
_REDACTED: Final = REDACTED.encode()

_SHORTEST: Final = 8
_FEWEST_DIFFERENT: Final = 4
_SHORTEST_WORD: Final = 16
_SHORTEST_NUMBER: Final = 12

# Not in the middle of a word; but the n of an escaped line break is no part of the word after it.
_BEGIN: Final = rb"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrtbf])|(?<=\\u[0-9a-fA-F]{4}))"
_DIGIT_SOON: Final = rb"(?=[A-Za-z_.~+/=-]{0,80}[0-9])"  # prose has words, keys have digits
_TEXT: Final = rb"(?:[^\"\\]|\\.)"  # one character inside a JSON string
_SHAPES: Final[dict[bytes, bytes]] = {
    b"sk-": _BEGIN + rb"sk-" + _DIGIT_SOON + rb"[A-Za-z0-9_-]{16,}",
    **{
        prefix: _BEGIN + prefix + rb"[A-Za-z0-9]{20,}"
        for prefix in (b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_")
    },
    b"github_pat_": _BEGIN + rb"github_pat_[A-Za-z0-9_]{20,}",
    b"AKIA": _BEGIN + rb"AKIA[0-9A-Z]{16}(?![0-9A-Za-z])",
    b"ASIA": _BEGIN + rb"ASIA[0-9A-Z]{16}(?![0-9A-Za-z])",
    b"xox": _BEGIN + rb"xox[a-z]-[A-Za-z0-9-]{10,}",
    b"AIza": _BEGIN + rb"AIza[0-9A-Za-z_-]{35}",
    b"earer ": rb"(?<=[Bb]earer )" + _DIGIT_SOON + rb"(?:[A-Za-z0-9._~+/=-]|\\/){16,}",
    b"PRIVATE KEY-----": (
        rb"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----"
        + _TEXT
        + rb"*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|(?=\")|\Z)"
    ),
}
"""What keys look like, by bytes that each of them has."""


class Redactor:
    """Replaces secrets in encoded JSON, which stays JSON."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        used = {each for each in secrets if is_secret(each)}
        forms = {form for secret in used for form in _forms(secret)}
        # The longest first, so that no secret hides the end of another that begins with it.
        literals = [re.escape(form) for form in sorted(forms, key=len, reverse=True)]
        self._needles = (*_SHAPES, *forms)
        self._pattern = re.compile(b"|".join([*literals, *_SHAPES.values()]), re.DOTALL)
        self._text = re.compile(
            "|".join(
                [
                    *(re.escape(each) for each in sorted(used, key=len, reverse=True)),
                    *(shape.decode() for shape in _SHAPES.values()),
                ]
            ),
            re.DOTALL,
        )

    def redact(self, body: bytes) -> bytes:
        """Return the record without secrets."""
        for needle in self._needles:
            if needle in body:
                return self._redact(body)
        return body

    def _redact(self, body: bytes) -> bytes:
        redacted, count = self._pattern.subn(_REDACTED, body)
        if not count or _is_json(redacted) or not _is_json(body):
            return redacted
        # A secret stood where JSON has no string, in a number: rare enough to take it apart.
        return msgspec.json.encode(self._without(json.loads(body)))

    def _without(self, value: object) -> object:
        match value:
            case str():
                return self._text.sub(REDACTED, value)
            case int() | float() if not isinstance(value, bool):
                plain = json.dumps(value)
                return REDACTED if self._text.search(plain) else value
            case list():
                return [self._without(each) for each in cast("list[object]", value)]
            case dict():
                members = cast("dict[str, object]", value)
                return {self._text.sub(REDACTED, k): self._without(v) for k, v in members.items()}
            case _:
                return value


def is_secret(value: str) -> bool:
    """Say whether a value is looked for: see the rule above."""
    if len(value) < _SHORTEST or len(set(value)) < _FEWEST_DIFFERENT:
        return False
    if value.isalpha():
        return len(value) >= _SHORTEST_WORD
    return not value.isdigit() or len(value) >= _SHORTEST_NUMBER


def _forms(secret: str) -> set[bytes]:
    """Return how the secret may look inside a JSON string, and in JSON inside of that."""
    forms = {secret}
    for _ in range(2):
        for form in list(forms):
            for ascii_only in (True, False):
                inside = json.dumps(form, ensure_ascii=ascii_only)[1:-1]
                forms |= {inside, inside.replace("/", "\\/"), _upper_escapes(inside)}
    return {form.encode(errors="surrogatepass") for form in forms}


def _upper_escapes(text: str) -> str:
    return re.sub(r"\\u[0-9a-f]{4}", lambda found: "\\u" + found[0][2:].upper(), text)


def _is_json(body: bytes) -> bool:
    try:
        msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


class Unstored(msgspec.Struct, frozen=True, gc=False):
    """An event that has been encoded, and has neither been redacted nor stored."""

    run_id: str | None
    type: str
    body: bytes


def redacted_append(
    redactor: Redactor,
    *,
    session_id: str,
    fence: int,
    batch: str,
    first: int,
    at: int,
    events: Sequence[Unstored],
    runs: Sequence[RunRow] = (),
    ledger: Sequence[LedgerRow] = (),
    session: bytes | None = None,
) -> Append:
    """Return an append whose records hold no secret.

    This is how a keeper makes one: events get their numbers as rows here and nowhere else, so
    that none reaches the store past the redactor.
    """
    redact = redactor.redact
    rows = [
        EventRow(number, each.run_id, each.type, redact(each.body))
        for number, each in enumerate(events, first)
    ]
    return Append(
        session_id=session_id,
        fence=fence,
        batch=batch,
        first=first,
        at=at,
        rows=tuple(rows),
        runs=tuple(replace(run, body=redact(run.body)) for run in runs),
        ledger=tuple(ledger),
        session=None if session is None else redact(session),
    )
