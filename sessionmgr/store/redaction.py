"""Redaction of secrets from records before they are stored.

It looks for the values of a child's secret variables, as they are and as they look inside JSON, and
inside JSON within JSON (a tool's output often is); and for texts with the shape of a well-known key
(`key_patterns`). A few searches for fixed bytes, which every secret contains, clear most records,
many at once; only the others are examined closely.

Each record is examined separately. Text that a provider streams in pieces is redacted before
(`StreamRedaction`), so no record contains a piece of a secret.

A value is used as a secret if it has at least 8 characters, at least 4 different ones, and cannot
be mistaken for an everyday word or number: one of letters alone needs 16 characters, one of
digits alone 12. Replacing shorter values would remove ordinary words and numbers from the records.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, cast

import msgspec

from sessionmgr.store.key_patterns import (
    BEGUN,
    BEGUN_TOKEN,
    CONTEXT,
    FIRST,
    FOOTER,
    HEADER,
    HINTS,
    KEY_PATTERNS,
    LONGEST_BEGINNING,
    LONGEST_FOOTER,
    PRIVATE_KEY,
    WORD,
    KeyPattern,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

REDACTED: Final = "[redacted]"
_REDACTED: Final = REDACTED.encode()

_SHORTEST: Final = 8
_FEWEST_DIFFERENT: Final = 4
_SHORTEST_WORD: Final = 16
_SHORTEST_NUMBER: Final = 12
_SHORTEST_PLAIN: Final = 6
_FIRST: Final = re.compile(FIRST)
_FIRST_CHARACTER: Final = re.compile("[-sgAx]")  # a match of it is much faster than one of FIRST
_BEGUN: Final = re.compile(BEGUN)
_BEGUN_TOKEN: Final = re.compile(BEGUN_TOKEN)
_MORE: Final = {
    shape: re.compile(f"{shape.more}*") for shape in KEY_PATTERNS if shape.more is not None
}
_HEADER: Final = re.compile(HEADER)
_FOOTER: Final = re.compile(FOOTER)
_AT_FOOTER: Final = re.compile(rf"{FOOTER}\Z")


class TextPatterns:
    """Patterns that find the secrets in a text, in their form before JSON encoding."""

    __slots__ = ("_begin", "_hints", "_literals", "_longest", "pattern")

    def __init__(self, secrets: Iterable[str]) -> None:
        used = [each for each in secrets if is_secret(each)]
        self._literals = tuple({form for secret in used for form in _forms(secret, depth=1)})
        self._longest = max(map(len, self._literals), default=0)
        firsts = "".join(sorted({form[0] for form in self._literals}))
        self._begin = re.compile(f"[{re.escape(firsts)}]") if firsts else None
        shapes = [f"({shape.in_text})" for shape in KEY_PATTERNS]
        self.pattern: Final = re.compile(
            "|".join([*_longest_first(self._literals), *shapes]), re.DOTALL
        )
        parts = {re.escape(part) for secret in used for part in _plain_parts(secret)}
        hints: dict[str, Iterable[str]] = {**HINTS, **({"": parts} if parts else {})}
        self._hints = tuple(
            (part, tuple(re.compile(hint).search for hint in some)) for part, some in hints.items()
        )

    def redact(self, text: str) -> str:
        """Return a whole text without secrets."""
        return text if self.is_clean(text) else self.pattern.sub(REDACTED, text)

    def is_clean(self, text: str) -> bool:
        """Return whether the text certainly contains no secret."""
        for part, searches in self._hints:
            if part in text:
                for search in searches:
                    if search(text) is not None:
                        return False
        return True

    def incomplete_from(self, text: str, start: int = 0) -> int:
        """Return the index from which a text's end may become a secret; its length if none."""
        end = length = len(text)
        if self._begin is not None:
            for found in self._begin.finditer(text, max(start, length - self._longest + 1)):
                tail = text[found.start() :]
                if any(each.startswith(tail) and each != tail for each in self._literals):
                    end = found.start()
                    break
        # Most texts end in a short word, or in none.
        earliest = max(start, length - LONGEST_BEGINNING)
        if (
            _FIRST_CHARACTER.search(text, earliest, end) is None
            and text.find("earer ", max(0, earliest - len("earer "))) < 0
        ):
            return end
        last_word = max(earliest, len(text.rstrip(WORD)))
        word = last_word if text.find("-----BEGIN", earliest) < 0 else earliest
        if word >= end:
            return end
        first = _FIRST.search(text, word, end)
        while first is not None:  # few words have such a character
            if _BEGUN.match(text, first.start()):
                end = first.start()
                break
            first = _FIRST.search(text, first.end(), end)
        if text.endswith("earer ", 0, last_word) and _BEGUN_TOKEN.match(text, last_word):
            end = min(end, last_word)
        return end


class StreamRedaction:
    """Redaction of one text that arrives in pieces.

    The cuts between pieces do not matter: the concatenated output equals the redaction of the whole
    text. The end of a piece is held back exactly as long as it may be the beginning of a secret.
    The held text is shorter than the longest secret or the longest recognizable beginning of a
    well-known key. An endless key is replaced as soon as it is recognized, and the rest of it is
    dropped.
    """

    __slots__ = ("_before", "_held", "_inside")

    def __init__(self) -> None:
        self._before: str = ""
        """The last characters passed on, unredacted: they determine where a key may begin."""
        self._held: str = ""
        self._inside: KeyPattern | None = None
        """The key that was replaced and may continue."""

    @property
    def held(self) -> int:
        """The number of characters held back."""
        return len(self._held)

    @property
    def is_plain(self) -> bool:
        """Whether nothing is held back or being dropped."""
        return not self._held and self._inside is None

    def accept_unchanged(self, text: str, patterns: TextPatterns) -> bool:
        """Return whether the whole text may be passed on unchanged; if so, record that."""
        if self._held or self._inside is not None:
            return False
        whole = self._before + text
        if not patterns.is_clean(whole) or patterns.incomplete_from(whole, len(self._before)) < len(
            whole
        ):
            return False
        self._before = whole[-CONTEXT:]
        return True

    def clean_part(self, text: str, patterns: TextPatterns) -> int:
        """Return how much of the text may be passed on unchanged while nothing is held back."""
        whole = self._before + text
        if not patterns.is_clean(whole):
            return 0
        return patterns.incomplete_from(whole, len(self._before)) - len(self._before)

    def record_unchanged(self, text: str) -> None:
        """Record a text that was passed on unchanged."""
        self._before = (self._before + text)[-CONTEXT:]

    def add(self, text: str, patterns: TextPatterns) -> str:
        """Add the next piece, and return the text that may be passed on now."""
        text = self._held + text
        self._held = ""
        if self._inside is not None:
            text = self._drop_rest(text)
        if not text:
            return ""
        whole, start, made = self._before + text, len(self._before), list[str]()
        while True:
            found = patterns.pattern.search(whole, start)
            begun = patterns.incomplete_from(whole, start)
            if found is None or found.start() >= begun:
                break
            made += (whole[start : found.start()], REDACTED)
            start = found.end()
            if start == len(whole):
                self._inside = _unterminated_pattern(found)
                begun = start
                break
        made.append(whole[start:begun])
        self._held = whole[begun:]
        self._before = whole[max(0, begun - CONTEXT) : begun]
        if found is not None and self._inside is PRIVATE_KEY:
            self._before = _HEADER.sub("", found[0], count=1)[-LONGEST_FOOTER:]
        return "".join(made)

    def close(self, patterns: TextPatterns) -> str:
        """Return the held text: nothing follows, so it is not the beginning of a secret."""
        held, self._held, self._inside = self._held, "", None
        whole, start, made = self._before + held, len(self._before), list[str]()
        self._before = ""
        while (found := patterns.pattern.search(whole, start)) is not None:
            made += (whole[start : found.start()], REDACTED)
            start = found.end()
        return "".join([*made, whole[start:]])

    def _drop_rest(self, text: str) -> str:
        """Drop the rest of the replaced key; return the text after it."""
        inside = self._inside
        assert inside is not None
        if inside is PRIVATE_KEY:
            text, self._before = self._before + text, ""
            footer = _FOOTER.search(text)
            if footer is None:
                self._before = text[-LONGEST_FOOTER:]
                return ""
            end = footer.end()
        else:
            more = _MORE[inside].match(text)
            assert more is not None
            end = more.end()
        if end < len(text) or inside is PRIVATE_KEY:
            self._inside = None
        self._before = (self._before + text[:end])[-CONTEXT:]
        return text[end:]


def _unterminated_pattern(found: re.Match[str]) -> KeyPattern | None:
    """Return the shape of a key that may continue after the end of a text."""
    if found.lastindex is None:
        return None  # the value of a variable
    shape = KEY_PATTERNS[found.lastindex - 1]
    if shape is PRIVATE_KEY:
        return None if _AT_FOOTER.search(found[0]) else shape
    return shape if shape.more is not None else None


class Redactor:
    """Redactor of encoded JSON; its output is JSON too."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        used = {each for each in secrets if is_secret(each)}
        forms = {form for secret in used for form in _forms(secret, depth=2)}
        # Each begins with plain bytes: the search for such a pattern skips quickly.
        parts = {re.escape(part) for secret in used for part in _plain_parts(secret)}
        hints: dict[str, Iterable[str]] = {**HINTS, "": parts}  # every text contains ""
        self._hints = tuple(
            (byte.encode(), re.compile(_encoded(hint)).search)
            for byte, some in hints.items()
            for hint in some
        )
        in_json = [*_longest_first(forms), *(shape.in_json for shape in KEY_PATTERNS)]
        self._pattern = re.compile(b"|".join(map(_encoded, in_json)), re.DOTALL)
        self._text = re.compile(
            "|".join([*_longest_first(used), *(shape.in_json for shape in KEY_PATTERNS)]), re.DOTALL
        )
        self.text: Final = TextPatterns(used)
        """The secrets to find in a text that arrives in pieces."""

    def redact(self, body: bytes) -> bytes:
        """Return the record without secrets."""
        return body if self.is_clean(body) else self._redact(body)

    def redact_all(self, bodies: Sequence[bytes], ours: int = 0) -> Sequence[bytes]:
        """Return the records without secrets; the same object if they contain none.

        The first `ours` bytes of each record are not examined.
        """
        if self.is_clean(b"\n".join([body[ours:] for body in bodies])):
            return bodies
        return [self.redact(body) for body in bodies]

    def is_clean(self, block: bytes) -> bool:
        """Return whether the block certainly contains no secret; it may consist of many records."""
        for byte, search in self._hints:  # half the time that `all` takes
            if byte in block and search(block) is not None:
                return False
        return True

    def _redact(self, body: bytes) -> bytes:
        redacted, count = self._pattern.subn(_REDACTED, body)
        if not count or _is_json(redacted) or not _is_json(body):
            return redacted
        # The secret was a number and not a string: rare enough to decode the record for it.
        return msgspec.json.encode(self._redact_record(json.loads(body)))

    def _redact_record(self, value: object) -> object:
        match value:
            case str():
                return self._text.sub(REDACTED, value)
            case int() | float() if not isinstance(value, bool):
                plain = json.dumps(value)
                return REDACTED if self._text.search(plain) else value
            case list():
                return [self._redact_record(each) for each in cast("list[object]", value)]
            case dict():
                members = cast("dict[str, object]", value)
                return {
                    self._text.sub(REDACTED, k): self._redact_record(v) for k, v in members.items()
                }
            case _:
                return value


def is_secret(value: str) -> bool:
    """Return whether a value is used as a secret: see the rule above."""
    if len(value) < _SHORTEST or len(set(value)) < _FEWEST_DIFFERENT:
        return False
    if value.isalpha():
        return len(value) >= _SHORTEST_WORD
    return not value.isdigit() or len(value) >= _SHORTEST_NUMBER


def _plain_parts(secret: str) -> set[str]:
    """Return texts, one of which every form of the secret contains: ideally an unchanged part."""
    plain = max(re.findall("[A-Za-z0-9]*", secret), key=len)
    return {plain} if len(plain) >= _SHORTEST_PLAIN else _forms(secret, depth=2)


def _forms(secret: str, depth: int) -> set[str]:
    """Return the forms of the secret: plain, as JSON, and as JSON within JSON, to that depth."""
    forms = {secret}
    for _ in range(depth):
        for form in list(forms):
            for ascii_only in (True, False):
                inside = json.dumps(form, ensure_ascii=ascii_only)[1:-1]
                forms |= {inside, inside.replace("/", "\\/"), _upper_escapes(inside)}
    return forms


def _longest_first(forms: Iterable[str]) -> list[str]:
    """Return their patterns, ordered so that none hides the end of a longer one."""
    return [re.escape(form) for form in sorted(forms, key=lambda form: (-len(form), form))]


def _encoded(pattern: str) -> bytes:
    return pattern.encode(errors="surrogatepass")


def _upper_escapes(text: str) -> str:
    return re.sub(r"\\u[0-9a-f]{4}", lambda found: "\\u" + found[0][2:].upper(), text)


def _is_json(body: bytes) -> bool:
    try:
        msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
