r"""Classification of output that failed to decode: malformed frame or noise.

A line is decoded first and classified here only if that failed, so that frames pay nothing for it.
Before and after a frame, a byte order mark, white space and terminal escape sequences are
tolerated; other text is not, because a log line that quotes a frame must not become one.

The remaining text begins like a frame or is noise. `{` begins a frame; `[` does if an object, a
list or a string follows or the line ends; `[INFO]` and `[12:30:01]`, frequent in logs, do not.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from sessionmgr.wire.terminal_escapes import SEQUENCE, strip_escapes

_WRAPPING: Final = rb"(?:\xef\xbb\xbf|\s|" + SEQUENCE + rb")*+"
_FRAME_BEGINS: Final = _WRAPPING + rb'(?P<frame>\{|\[\s*(?:[\[{"\]]|$))'


class NoiseLine(msgspec.Struct, frozen=True, gc=False):
    """A line that was not meant as a frame."""

    line: bytes


class MalformedFrame(msgspec.Struct, frozen=True, gc=False):
    """A line that begins like a frame but is not one, unchanged."""

    line: bytes
    why: str


def strip_wrapping(line: bytes) -> bytes | None:
    """Return the part of a line that begins like a frame, without byte order mark and escapes.

    None means that the line is noise. The result need not be well-formed.
    """
    found = re.match(_FRAME_BEGINS, line)  # compiled on first use, which takes a while
    if found is None:
        return None
    frame = line[found.start("frame") :]
    # JSON never holds a bare ESC: an escape sequence follows the frame, or makes it malformed.
    inside, escape, behind = frame.partition(b"\x1b")
    return (frame if strip_escapes(escape + behind).strip() else inside).rstrip()
