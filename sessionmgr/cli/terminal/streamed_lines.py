"""Joins streamed pieces of text into lines, for readers of one event per line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from sessionmgr.cli.terminal.safe_text import display_width
from sessionmgr.model import MessageStreamed, ReasoningStreamed, ToolCallUpdated

if TYPE_CHECKING:
    from sessionmgr.model import AnyEvent

_FIELDS: Final[dict[type[object], str]] = {
    MessageStreamed: "delta",
    ReasoningStreamed: "delta",
    ToolCallUpdated: "output_delta",
}
_IN_ENVELOPE: Final = frozenset({"seq", "at"})


class StreamedLines:
    """Joins the pieces of one stream until a line is complete or has the maximum width.

    Each line appears as the event of its first piece, with the text of all of them.
    """

    def __init__(self, width: int) -> None:
        self._width: Final = width
        self._first: AnyEvent | None = None
        self._text = ""

    def feed(self, event: AnyEvent) -> list[AnyEvent]:
        """Return the events to show now, one line each."""
        field = _FIELDS.get(type(event))
        if field is None:
            return [*self.flush(), event]
        lines = [] if self._continues(event) else self.flush()
        if self._first is None:
            self._first = event
        self._text += getattr(event, field)
        while (end := self._end_of_line()) is not None:
            lines.append(self._line(self._text[:end]))
            self._text = self._text[end:].lstrip("\n")
            self._first = event if self._text else None
        return lines

    def flush(self) -> list[AnyEvent]:
        """Return the incomplete line, if any: no piece follows it."""
        lines = [self._line(self._text)] if self._text.strip() else []
        self._first, self._text = None, ""
        return lines

    def _continues(self, event: AnyEvent) -> bool:
        """Return whether an event continues the stream of the pieces before it."""
        if self._first is None or type(event) is not type(self._first):
            return self._first is None
        names = {*event.__struct_fields__} - _IN_ENVELOPE - {_FIELDS[type(event)]}
        return all(getattr(event, name) == getattr(self._first, name) for name in names)

    def _end_of_line(self) -> int | None:
        """Return where a line ends: at a newline, or at the last blank within the width."""
        head, newline, _ = self._text.partition("\n")
        if display_width(head) <= self._width:
            return len(head) if newline else None
        end = 0
        while end < len(head) and display_width(head[: end + 1]) <= self._width:
            end += 1
        end = max(end, 1)
        blank = head.rfind(" ", 0, end + 1)
        return blank + 1 if blank > 0 else end

    def _line(self, text: str) -> AnyEvent:
        assert self._first is not None
        return replace(self._first, **{_FIELDS[type(self._first)]: text})
