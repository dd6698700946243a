"""Shapes of well-known API keys and private keys, to detect a key whose value is unknown.

Each shape has three forms: for a record, which is JSON; for a text; and for the end of a text that
may be the beginning of such a key, because text arrives in pieces.
"""

from __future__ import annotations

from typing import Final

import msgspec

LONGEST_BEGINNING: Final = 101
"""Maximum number of characters before a key's beginning is recognized or ruled out."""
LONGEST_FOOTER: Final = 72
"""Maximum number of characters of a private key's last line."""
CONTEXT: Final = 8
"""Number of characters before a key that affect its recognition."""

# Not inside a word; but the n of an escaped line break does not belong to the word after it.
_BEGIN: Final = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrtbf])|(?<=\\u[0-9a-fA-F]{4}))"
_NO_DIGIT: Final = r"[A-Za-z_.~+/=-]{0,80}"
_DIGIT_SOON: Final = rf"(?={_NO_DIGIT}[0-9])"  # prose has words, keys have digits
_IN_JSON: Final = r"(?:[^\"\\]|\\.)"  # one character inside a JSON string
HEADER: Final = "-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----"
FOOTER: Final = "-----END [A-Z ]{0,40}PRIVATE KEY-----"
WORD: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.~+/=-"
"""Characters of keys, except for the first line of a private key."""


class KeyPattern(msgspec.Struct, frozen=True):
    """The shape of one kind of key."""

    in_json: str
    in_text: str
    begun: str
    """The end of a text that may become a key, without the required context before it."""
    more: str | None = None
    """Characters that continue it; None if its length is fixed."""


def _prefixed(head: tuple[str, ...], body: str, least: int, *, digits: bool = False) -> KeyPattern:
    """Return the shape of a key with a prefix and at least so many characters of a body."""
    whole = "".join(head)
    soon, rest = (_DIGIT_SOON, f"(?:{body}{{0,{least - 1}}}|{_NO_DIGIT})") if digits else ("", "")
    rest = rest or f"{body}{{0,{least - 1}}}"
    heads = "|".join("".join(head[:length]) for length in range(1, len(head)))
    found = f"{_BEGIN}{whole}{soon}{body}{{{least},}}"
    return KeyPattern(found, found, f"{heads}|{whole}{rest}", body)


def _fixed_length(
    head: tuple[str, ...], body: str, length: int, *, alone: bool = False
) -> KeyPattern:
    """Return the shape of a key of fixed length; `alone`: no letter may follow it."""
    whole = "".join(head)
    heads = "|".join("".join(head[:size]) for size in range(1, len(head)))
    found = f"{_BEGIN}{whole}{body}{{{length}}}" + ("(?![0-9A-Za-z])" if alone else "")
    most = length if alone else length - 1
    return KeyPattern(found, found, f"{heads}|{whole}{body}{{0,{most}}}")


_BEARER: Final = r"(?<=[Bb]earer )"
_TOKEN: Final = "[A-Za-z0-9._~+/=-]"
_DASHES: Final = "|".join("-----BEGIN "[:length] for length in range(1, len("-----BEGIN ")))

PRIVATE_KEY: Final = KeyPattern(
    rf"{HEADER}{_IN_JSON}*?(?:{FOOTER}|(?=\")|\Z)",
    rf"{HEADER}.*?(?:{FOOTER}|\Z)",
    f"(?:{_DASHES}|-----BEGIN [A-Z ]{{0,51}}|-----BEGIN [A-Z ]{{0,40}}PRIVATE KEY-{{0,4}})",
)
"""A private key extends to its last line, or to the end of the text."""

_BEARER_TOKEN: Final = KeyPattern(
    rf"{_BEARER}{_DIGIT_SOON}(?:{_TOKEN}|\\/){{16,}}",
    f"{_BEARER}{_DIGIT_SOON}{_TOKEN}{{16,}}",
    f"{_BEARER}(?:{_TOKEN}{{0,15}}|{_NO_DIGIT})",
    _TOKEN,
)
_PREFIXED: Final = (
    _prefixed(("s", "k", "-"), "[A-Za-z0-9_-]", 16, digits=True),
    _prefixed(("g", "h", "[pousr]", "_"), "[A-Za-z0-9]", 20),
    _prefixed(tuple("github_pat_"), "[A-Za-z0-9_]", 20),
    _fixed_length(("A", "(?:K|S)", "I", "A"), "[0-9A-Z]", 16, alone=True),
    _prefixed(("x", "o", "x", "[a-z]", "-"), "[A-Za-z0-9-]", 10),
    _fixed_length(tuple("AIza"), "[0-9A-Za-z_-]", 35),
)
KEY_PATTERNS: Final = (*_PREFIXED, _BEARER_TOKEN, PRIVATE_KEY)

FIRST: Final = r"-|(?<![A-Za-z0-9_-])[sgAx]|(?<=\\[nrtbf])[sgAx]|(?<=\\u[0-9a-fA-F]{4})[sgAx]"
"""Beginnings of keys and their context; except for a token after `Bearer`."""
BEGUN: Final = rf"(?:{'|'.join(each.begun for each in (*_PREFIXED, PRIVATE_KEY))})\Z"
"""The end of a text that may become a key, except for such a token."""
BEGUN_TOKEN: Final = rf"{_BEARER_TOKEN.begun}\Z"

# Every match of a shape contains one of these texts, and thus a certain byte, the rarest of them:
# few records have it, and a search for a byte takes almost no time. Searching for each text
# separately takes a tenth of the time of one combined pattern, which stops at every byte.
HINTS: Final = {
    "k": ("sk-",),
    "x": ("xox[a-z]-",),
    "V": ("PRIVATE KEY-----",),
    "_": ("gh[pousr]_", "github_pat_"),
    "A": ("A(?:KIA|SIA|Iza)",),
    " ": ("earer ",),
}
