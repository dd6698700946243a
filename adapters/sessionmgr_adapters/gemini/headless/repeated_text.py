"""Text that Gemini writes again after a hidden retry.

If the stream of an answer breaks off, Gemini requests the answer again, up to three times, and
writes it from its beginning without a mark. The filter recognizes such a repetition by its time, as
Gemini waits before each retry, and by its text, which begins like the text before. It holds the
repeated part back. Text that only resembles a repetition is shown in the end, because losing text
is worse than showing it twice.
"""

from __future__ import annotations

from typing import Final

RETRY_DELAYS: Final = (1.0, 2.0, 4.0)
"""Seconds that Gemini waits before each of its retries."""
TIMER_ERROR: Final = 0.05
"""Seconds by which a timer of Node may be early, with the rounding of two timestamps."""


class RepetitionFilter:
    """Filter of the pieces of one message."""

    def __init__(self) -> None:
        self._text = ""
        self._again: str | None = None
        """The possible repetition of the text, held back; None while there is none."""
        self._retries = 0
        self._last: float | None = None

    def feed(self, piece: str, at: float | None) -> str:
        """Add a piece that was written at a time in seconds; return the text to show now."""
        if self._may_restart(piece, at):
            self._again = ""
            self._retries += 1
        self._last = at
        if self._again is None:
            self._text += piece
            return piece
        self._again += piece
        if self._text.startswith(self._again):
            return ""
        again, self._again = self._again, None
        if again.startswith(self._text):
            new = again[len(self._text) :]
            self._text = again
            return new
        self._text += again
        return again

    def end(self, *, failed: bool = False) -> str:
        """End the message; return the text that was held back and is not a repetition.

        Args:
            failed: Whether the turn failed, so that its last retry may have been cut short.
        """
        again, text = self._again, self._text
        self._text, self._again, self._retries, self._last = "", None, 0, None
        return "" if failed or again is None or again == text else again

    def _may_restart(self, piece: str, at: float | None) -> bool:
        if at is None or self._last is None or self._retries == len(RETRY_DELAYS):
            return False
        if at - self._last < RETRY_DELAYS[self._retries] - TIMER_ERROR:
            return False
        return self._text.startswith(piece) or piece.startswith(self._text)
