r"""What on a child's output is a frame, what was meant to be one, and what is noise.

A line is decoded first and looked at here only if that failed, so that frames pay nothing for it.
In front of a frame and behind it, a byte order mark, white space and terminal escape sequences are
tolerated; any other text is not, because a log line that quotes a frame must not become one.

What is left begins like a frame or is noise. `{` does; `[` does when an object, a list or a string
follows or the line is at its end; `[INFO]` and `[12:30:01]`, which logs are full of, do not.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from sessionmgr.wire.terminal_escapes import SEQUENCE, strip_escapes

_WRAPPING: Final = rb"(?:\xef\xbb\xbf|\s|" + SEQUENCE + rb")*+"
_FRAME_BEGINS: Final = _WRAPPING + rb'(?P<frame>\{|\[\s*(?:[\[{"\]]|$))'


class NoiseLine(msgspec.Struct, frozen=True, gc=False):
    """A line that was never meant to be a frame."""

    line: bytes


class MalformedFrame(msgspec.Struct, frozen=True, gc=False):
    """A line that begins like a frame and is none, kept as it came."""

    line: bytes
    why: str


def strip_wrapping(line: bytes) -> bytes | None:
    """Return what on a line begins like a frame, without what is wrapped round it.

    None means that the line is noise. What comes back need not be well-formed.
    """
    found = re.match(_FRAME_BEGINS, line)  # compiled when first used: that takes a while
    if found is None:
        return None
    frame = line[found.start("frame") :]
    # JSON never holds a bare ESC: what begins with one stands behind the frame, or breaks it.
    inside, escape, behind = frame.partition(b"\x1b")
    return (frame if strip_escapes(escape + behind).strip() else inside).rstrip()
