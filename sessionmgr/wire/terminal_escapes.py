"""Terminal escape sequences, such as colours and titles, and their removal from text."""

from __future__ import annotations

import re
from typing import Final

# Every branch stops at the next ESC, so that a text of many unfinished sequences takes linear time.
SEQUENCE: Final = (
    rb"\x1b(?:"
    rb"\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    rb"|\][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC: titles, links
    rb"|[PX^_][^\x1b]*\x1b\\"  # DCS, SOS, PM, APC
    rb"|[ -/]+[0-~]"  # character sets
    rb"|[0-OQ-WYZ\\`-~]"  # sequences without arguments
    rb")"
)


def strip_escapes(text: bytes) -> bytes:
    """Return the text without the escape sequences in it."""
    # Compiled on first use, because few programs need it and it takes as long as many imports.
    return re.sub(SEQUENCE, b"", text) if b"\x1b" in text else text
