"""Secrets, kept out of what is stored.

What is looked for: the values of a child's secret variables, as they are and as they look inside
JSON, and inside JSON within JSON (a tool's output often is); and whatever has the shape of a
well-known key. Most records hold nothing of the kind, and a few searches for fixed bytes, which all
of it has, find that out, for many records at once; only the rest is looked at closely.

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

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

REDACTED: Final = "[redacted]"
_REDACTED: Final = REDACTED.encode()

_SHORTEST: Final = 8
_FEWEST_DIFFERENT: Final = 4
_SHORTEST_WORD: Final = 16
_SHORTEST_NUMBER: Final = 12
_SHORTEST_PLAIN: Final = 6

# Not in the middle of a word; but the n of an escaped line break is no part of the word after it.
_BEGIN: Final = rb"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrtbf])|(?<=\\u[0-9a-fA-F]{4}))"
_DIGIT_SOON: Final = rb"(?=[A-Za-z_.~+/=-]{0,80}[0-9])"  # prose has words, keys have digits
_TEXT: Final = rb"(?:[^\"\\]|\\.)"  # one character inside a JSON string
# All that is found by a shape has one of these in it, and so the byte that it stands under: few
# records have that, and a byte is found, or not, in no time. To look for each by itself takes a
# tenth of the time of a pattern that has them all: that stops at every byte.
_HINTS: Final = {
    b"-": (rb"sk-", rb"xox[a-z]-", rb"PRIVATE KEY-----"),
    b"_": (rb"gh[pousr]_", rb"github_pat_"),
    b"A": (rb"A(?:KIA|SIA|Iza)",),
    b" ": (rb"earer ",),
}
_SHAPES: Final = (
    _BEGIN + rb"sk-" + _DIGIT_SOON + rb"[A-Za-z0-9_-]{16,}",
    _BEGIN + rb"gh[pousr]_[A-Za-z0-9]{20,}",
    _BEGIN + rb"github_pat_[A-Za-z0-9_]{20,}",
    _BEGIN + rb"A(?:KIA|SIA)[0-9A-Z]{16}(?![0-9A-Za-z])",
    _BEGIN + rb"xox[a-z]-[A-Za-z0-9-]{10,}",
    _BEGIN + rb"AIza[0-9A-Za-z_-]{35}",
    rb"(?<=[Bb]earer )" + _DIGIT_SOON + rb"(?:[A-Za-z0-9._~+/=-]|\\/){16,}",
    rb"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----"
    + _TEXT
    + rb"*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|(?=\")|\Z)",
)


class Redactor:
    """Replaces secrets in encoded JSON, which stays JSON."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        used = {each for each in secrets if is_secret(each)}
        forms = {form for secret in used for form in _forms(secret)}
        # The longest first, so that no secret hides the end of another that begins with it.
        literals = [re.escape(form) for form in sorted(forms, key=len, reverse=True)]
        # Each begins with plain bytes: such a pattern is searched for by leaps.
        parts = {re.escape(part) for secret in used for part in _plain_parts(secret)}
        hints: dict[bytes, Iterable[bytes]] = {**_HINTS, b"": parts}  # b"" is in everything
        self._hints = tuple(
            (byte, re.compile(hint).search) for byte, some in hints.items() for hint in some
        )
        self._pattern = re.compile(b"|".join([*literals, *_SHAPES]), re.DOTALL)
        self._text = re.compile(
            "|".join(
                [
                    *(re.escape(each) for each in sorted(used, key=len, reverse=True)),
                    *(shape.decode() for shape in _SHAPES),
                ]
            ),
            re.DOTALL,
        )

    def redact(self, body: bytes) -> bytes:
        """Return the record without secrets."""
        return body if self.is_clean(body) else self._redact(body)

    def redact_all(self, bodies: Sequence[bytes], ours: int = 0) -> Sequence[bytes]:
        """Return the records without secrets; the very same object if there are none in them.

        So many bytes at the beginning of each are `ours`, and not looked at.
        """
        if self.is_clean(b"\n".join([body[ours:] for body in bodies])):
            return bodies
        return [self.redact(body) for body in bodies]

    def is_clean(self, block: bytes) -> bool:
        """Say whether there is no secret in it for sure; `block` may be many records in one."""
        for byte, search in self._hints:  # half the time that `all` takes
            if byte in block and search(block) is not None:
                return False
        return True

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


def _plain_parts(secret: str) -> set[bytes]:
    """Return bytes one of which is in every form of the secret: what no form changes, at best."""
    plain = max(re.findall("[A-Za-z0-9]*", secret), key=len)
    return {plain.encode()} if len(plain) >= _SHORTEST_PLAIN else _forms(secret)


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
