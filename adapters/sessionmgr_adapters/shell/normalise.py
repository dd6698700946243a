"""Output of a command: decoded as it arrives, and kept up to a limit."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING, Final

from sessionmgr.model import ErrorOccurred, Failure, FailureKind
from sessionmgr.wire import LineDecoder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.wire import Line

MAX_OUTPUT: Final = 4 * 1024 * 1024
"""Maximum number of bytes kept of a stream; the number of further bytes is reported."""


class PassThroughDecoder(LineDecoder):
    """A decoder that passes each read on unchanged, not split into lines."""

    def feed(self, data: bytes | bytearray) -> Sequence[Line]:
        """Return the read."""
        return [bytes(data)]

    def close(self) -> Sequence[Line]:
        """Return nothing: no data is held back."""
        return []


class OutputStream:
    """Output stream, decoded as UTF-8 across reads; invalid bytes are replaced."""

    def __init__(self, limit: int = MAX_OUTPUT) -> None:
        self._limit = limit
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._texts: list[str] = []
        self._taken = 0
        self.left_out = 0
        """Number of bytes that came after the limit was reached."""

    def feed(self, data: bytes) -> str:
        """Decode and keep data, and return its text."""
        kept = data[: max(0, self._limit - self._taken)]
        self._taken += len(kept)
        self.left_out += len(data) - len(kept)
        return self._add(self._decoder.decode(kept))

    def close(self) -> str:
        """Return the replacement of a character that was incomplete at the end."""
        return self._add(self._decoder.decode(b"", final=True))

    def text(self) -> str:
        """Return all text that was kept."""
        return "".join(self._texts)

    def _add(self, text: str) -> str:
        if text:
            self._texts.append(text)
        return text


def truncation_warning(name: str, count: int) -> ErrorOccurred:
    """Return the warning that `count` bytes of a stream were not kept."""
    failure = Failure(
        kind=FailureKind.PROVIDER_ERROR,
        message=f"{name} exceeds the limit of what is kept: the last {count} bytes are left out",
        phase="turn",
    )
    return ErrorOccurred(failure=failure, severity="warning")
