"""Pages of events, with a marker wherever pruned ones are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.store.rows import EventPage, EventRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PAGE_BYTES: Final = 8 * 1024 * 1024
"""A page ends with the row by which its records exceed this size."""


class PrunedRange(msgspec.Struct, frozen=True, gc=False):
    """Numbers whose events were pruned, `first` to `last`."""

    first: int
    last: int


def pruned_marker_row(session_id: str, hole: PrunedRange) -> EventRow:
    """Return the row that replaces pruned events."""
    body = {
        "type": "events_pruned",
        "seq": hole.last,
        "session_id": session_id,
        "synthetic": True,
        "first": hole.first,
        "last": hole.last,
    }
    return EventRow(hole.last, None, "events_pruned", msgspec.json.encode(body))


def paginate(
    session_id: str, items: Iterable[EventRow | PrunedRange], *, limit: int, end: int
) -> EventPage:
    """Return a page of the rows that were found, in order.

    `end` is the last number that was examined, if all of it fits.
    """
    rows: list[EventRow] = []
    size = 0
    for row in _with_markers(session_id, items):
        if len(rows) >= limit or size > PAGE_BYTES:
            return EventPage(tuple(rows), rows[-1].seq, more=True)
        rows.append(row)
        size += len(row.body)
    return EventPage(tuple(rows), end, more=False)


def _with_markers(session_id: str, items: Iterable[EventRow | PrunedRange]) -> Iterator[EventRow]:
    """Replace pruned ranges by markers; adjacent ranges get one marker."""
    open_hole: PrunedRange | None = None
    for item in items:
        if open_hole is not None:
            if isinstance(item, PrunedRange) and item.first == open_hole.last + 1:
                open_hole = PrunedRange(open_hole.first, item.last)
                continue
            yield pruned_marker_row(session_id, open_hole)
            open_hole = None
        if isinstance(item, PrunedRange):
            open_hole = item
        else:
            yield item
    if open_hole is not None:
        yield pruned_marker_row(session_id, open_hole)
