"""Lines at the bottom of a terminal that are redrawn in place, without flicker.

A redraw is one write over the previous lines, without clearing the screen. No terminal mode is
left switched on between writes, so that the process may be killed at any moment. A terminal that
has become narrower has wrapped the previous lines: `_rows` counts them accordingly.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, NamedTuple, TextIO

from sessionmgr.cli.terminal.colour import Ink, colour_for
from sessionmgr.cli.terminal.render_progress import line_width
from sessionmgr.cli.terminal.safe_text import encode_text, strip_controls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.cli.terminal.render_progress import Line

# A synchronized update, where the terminal supports it; long lines are cut, not wrapped.
_BEGIN: Final = "\x1b[?2026h\x1b[?7l\r"
_END: Final = "\x1b[J\x1b[?7h\x1b[?2026l"
_CLEAR_LINE: Final = "\x1b[K\r\n"
_SMALLEST: Final = 10
_USUAL: Final = (80, 24)


class TerminalSize(NamedTuple):
    """Size of a terminal."""

    width: int
    height: int


class LiveArea:
    """Draws lines in place on a terminal, and prints permanent lines above them."""

    def __init__(self, terminal: TextIO) -> None:
        self._fd: Final = terminal.fileno()
        self._encoding: Final = terminal.encoding or "utf-8"
        self._ink: Final[Ink] = colour_for(terminal)
        self._widths: list[int] = []
        self._painted = ""

    def size(self) -> TerminalSize:
        """Return the present size of the terminal."""
        try:
            width, height = os.get_terminal_size(self._fd)
        except OSError:
            width, height = _USUAL
        return TerminalSize(max(width or _USUAL[0], _SMALLEST), height or _USUAL[1])

    def draw(self, lines: Sequence[Line], above: Sequence[tuple[str, str]] = ()) -> None:
        """Draw lines in place of the previous ones, below permanent lines (text, tone)."""
        up = self._rows()
        painted = "".join(
            "".join(self._ink(text, tone) for text, tone in line) + _CLEAR_LINE for line in lines
        )
        if not above and not up and not lines:
            return
        if above or painted != self._painted or up != len(self._widths):
            climb = f"\x1b[{up}A" if up else ""
            # These may be longer than the terminal is wide; they wrap, as in any other program.
            stays = "".join(
                f"{self._ink(strip_controls(text), tone)}{_CLEAR_LINE}" for text, tone in above
            )
            if stays:
                stays = f"\x1b[J\x1b[?7h{stays}\x1b[?7l"
            self._write(f"{_BEGIN}{climb}{stays}{painted}{_END}")
        self._painted = painted
        self._widths = [line_width(line) for line in lines]

    def _rows(self) -> int:
        """Return the number of rows that the previous lines occupy now."""
        width, height = self.size()
        rows = sum(max(1, -(-cells // width)) for cells in self._widths)
        return min(rows, height - 1)

    def _write(self, text: str) -> None:
        left = memoryview(encode_text(text, self._encoding))
        while left:
            left = left[os.write(self._fd, left) :]
