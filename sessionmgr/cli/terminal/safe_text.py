"""Untrusted text made safe for a terminal: no control characters, and a known width.

Output of agents, tools and repositories may contain escape sequences. Some forge the contents of
the screen; some make the terminal answer as if the user had typed. All of them are removed.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

# A complete escape sequence: control (CSI), string (OSC, DCS, SOS, PM, APC), and others.
_SEQUENCE: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\n\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-OQ-WYZ\\`-~]"
)
# The beginning of one, cut off by the end of the text.
_BEGUN: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*\Z"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\n\x07\x1b\x9c]*\x1b?\Z"
    r"|\x1b[ -/]*\Z"
)
_LONGEST_SEQUENCE: Final = 4096
# Control characters except newline and tab; marks of text direction; lone surrogates.
_UNSAFE: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_SPACE: Final = re.compile(r"\s+")
_ELLIPSIS: Final = "…"
# Replacements for encodings that lack these characters.
_PLAIN: Final = str.maketrans("━─…·✗✓", "#-~-x+")


class SafeStream:
    """Makes a stream of text safe, piece by piece. The borders of the pieces do not matter."""

    def __init__(self) -> None:
        self._held = ""
        self._after_return = False  # A newline now would belong to the preceding carriage return.

    def feed(self, text: str) -> str:
        """Return the safe text so far, without an end that the next piece may continue."""
        text = self._held + text
        begun = _BEGUN.search(text, max(0, len(text) - _LONGEST_SEQUENCE))
        at = begun.start() if begun else len(text)
        self._held = text[at:]
        return self._safe(text[:at])

    def close(self) -> str:
        """Return the remaining text: no piece follows."""
        held, self._held = self._held, ""
        return self._safe(held)

    def _safe(self, text: str) -> str:
        text = _SEQUENCE.sub("", text)
        if not text:  # Only sequences may stand between a carriage return and its newline.
            return ""
        if self._after_return:
            text = text.removeprefix("\n")
        self._after_return = text.endswith("\r")
        return _without_controls(text)


def strip_controls(text: str) -> str:
    """Return text without escape sequences; other control characters are written as `^G`."""
    if text.isascii() and text.isprintable():
        return text
    return _without_controls(_SEQUENCE.sub("", text))


def escape_controls(text: str) -> str:
    """Return text with each control character made visible and nothing left out.

    `one_line` drops whole escape sequences, and a sequence can contain text: a request to the user
    must not hide a part of itself in one.
    """
    return _UNSAFE.sub(_caret_notation, text)


def escaped_json(text: str) -> str:
    """Return JSON with the same values, in which no character controls a terminal.

    JSON itself escapes only characters below U+0020; the others occur only in its strings.
    """
    if text.isascii() and "\x7f" not in text:
        return text
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(text: str) -> str:
    """Return text made safe, on one line."""
    return _SPACE.sub(" ", strip_controls(text)).strip()


def encode_text(text: str, encoding: str) -> bytes:
    """Return text in an encoding; characters that it lacks are replaced by similar ones."""
    try:
        return text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_PLAIN).encode(encoding, "replace")


def display_width(text: str) -> int:
    """Return the width of a text in columns."""
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def truncate(text: str, width: int) -> str:
    """Return a line truncated to `width` columns, with an ellipsis at its end."""
    if display_width(text) <= width:
        return text
    if width < 1:
        return ""
    left = width - 1
    for at, character in enumerate(text):
        left -= _width(character)
        if left < 0:
            return text[:at].rstrip() + _ELLIPSIS
    return text


def truncate_middle(text: str, width: int) -> str:
    """Return a line truncated to `width` columns in its middle, since its end tells as much."""
    if display_width(text) <= width or width < 1:
        return truncate(text, width)
    tail, left = "", (width - 1) // 2
    for character in reversed(text):
        left -= _width(character)
        if left < 0:
            break
        tail = character + tail
    return truncate(text, width - display_width(tail)) + tail


def pad_to_width(text: str, width: int) -> str:
    """Return a line of exactly `width` columns: truncated, or padded with blanks."""
    text = truncate(text, width)
    return text + " " * (width - display_width(text))


def _without_controls(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _UNSAFE.sub(_caret_notation, text)


def _caret_notation(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20 or code == 0x7F:
        return f"^{chr(code ^ 0x40)}"
    return "\ufffd"


def _width(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
