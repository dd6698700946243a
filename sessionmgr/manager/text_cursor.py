"""The text cursor: it yields the text that an agent writes in a run, in pieces, as it arrives."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from sessionmgr.model import TextPieces

if TYPE_CHECKING:
    from typing import Self

    from sessionmgr.manager.cursor import Cursor


class TextCursor:
    """An async iterator over the pieces of an agent's text; see `TextPieces`."""

    def __init__(self, events: Cursor) -> None:
        self._events: Final = events
        self._text: Final = TextPieces()
        self._pieces: Final[deque[str]] = deque()

    def __aiter__(self) -> Self:
        """Iterate over the remaining pieces."""
        return self

    async def __anext__(self) -> str:
        """Wait for the next piece and return it."""
        while not self._pieces:
            events = await self._events.batch()
            if not events:
                raise StopAsyncIteration
            self._pieces.extend(filter(None, map(self._text.piece, events)))
        return self._pieces.popleft()

    async def aclose(self) -> None:
        """Stop reading."""
        self._pieces.clear()
        await self._events.aclose()
