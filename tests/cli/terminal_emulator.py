"""A terminal emulator with what our own output needs, resizing included.

Like most terminals, it wraps lines anew when it is resized. An unknown sequence is an error, so
that no unintended sequence passes the tests.
"""

import re
from dataclasses import dataclass

from sessionmgr.cli.terminal.safe_text import display_width

_PIECE = re.compile(
    r"\x1b\[(?P<private>\??)(?P<numbers>[\d;]*)(?P<final>[A-Za-z])|(?P<control>[\r\n])"
    r"|(?P<text>[^\x00-\x1f\x7f]+)",
)


@dataclass
class ScreenLine:
    """A line; it continues in the next row if it was too long."""

    text: str = ""
    wraps: bool = False


class EmulatedScreen:
    """Rows of text, and the position of the cursor."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self.scrolled: list[str] = []
        self._lines: list[ScreenLine] = [ScreenLine()]
        self._row = self._column = 0
        self._wrap = True
        self._held = ""

    def lines(self) -> list[str]:
        """Return the visible lines."""
        return [line.text.rstrip() for line in self._lines]

    def feed(self, text: str) -> None:
        """Process more output of a program."""
        text = self._held + text
        at = 0
        while at < len(text):
            piece = _PIECE.match(text, at)
            if piece is None:
                if len(text) - at < 12 and text[at] == "\x1b":
                    break  # cut off
                raise AssertionError(f"not for a terminal: {text[at : at + 20]!r}")
            at = piece.end()
            if piece["text"]:
                self._write(piece["text"])
            elif piece["control"] == "\r":
                self._column = 0
            elif piece["control"] == "\n":
                self._lines[self._row].wraps = False
                self._down()
            else:
                self._run_escape(piece["private"] + piece["final"], piece["numbers"])
        self._held = text[at:]

    def resize(self, columns: int, rows: int) -> None:
        """Wrap all lines anew; the cursor stays with its text."""
        whole: list[str] = [""]
        cursor = (0, 0)
        for n, line in enumerate(self._lines):
            if n == self._row:
                cursor = (len(whole) - 1, len(whole[-1]) + self._column)
            whole[-1] += line.text
            if not line.wraps:
                whole.append("")
        whole.pop()
        self.columns, self.rows = columns, rows
        self._lines, self._row, self._column = [], 0, 0
        for n, text in enumerate(whole):
            text = text.rstrip()
            pieces = [text[at : at + columns] for at in range(0, len(text), columns)] or [""]
            if n == cursor[0]:
                self._row = len(self._lines) + min(cursor[1] // columns, len(pieces) - 1)
                self._column = min(cursor[1] % columns, columns - 1)
            self._lines += [ScreenLine(piece, True) for piece in pieces[:-1]] + [
                ScreenLine(pieces[-1])
            ]
        while len(self._lines) > rows:
            self.scrolled.append(self._lines.pop(0).text)
            self._row = max(0, self._row - 1)

    def _write(self, text: str) -> None:
        for character in text:
            width = display_width(character)
            if self._column + width > self.columns:
                if not self._wrap:
                    continue
                self._lines[self._row].wraps = True
                self._down()
                self._column = 0
            line = self._lines[self._row]
            line.text = line.text.ljust(self._column)
            line.text = line.text[: self._column] + character + line.text[self._column + 1 :]
            self._column += 1

    def _down(self) -> None:
        if self._row == self.rows - 1:
            self.scrolled.append(self._lines.pop(0).text.rstrip())
        else:
            self._row += 1
        if self._row == len(self._lines):
            self._lines.append(ScreenLine())

    def _run_escape(self, what: str, numbers: str) -> None:
        line = self._lines[self._row]
        match what:
            case "m":
                pass
            case "A":
                self._row = max(0, self._row - int(numbers or 1))
            case "K":
                line.text = line.text[: self._column]
                line.wraps = False
            case "J":
                line.text = line.text[: self._column]
                line.wraps = False
                del self._lines[self._row + 1 :]
            case "?h" | "?l" if numbers == "7":
                self._wrap = what == "?h"
            case "?h" | "?l" if numbers in {"25", "2026"}:
                pass
            case _:
                raise AssertionError(f"not for a terminal: {what} {numbers}")
