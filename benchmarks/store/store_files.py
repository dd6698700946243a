"""The path and the content of a contestant's store, the same for all of them."""

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sessionmgr.store import Append, EventRow

BODY: Final = (
    b'{"seq":1000000,"at":"2026-01-01T00:00:00.000Z","type":"message_streamed",'
    b'"delta":"some eight words of what the model said so far"}'
)
"""About 150 bytes, as most stored events have."""


@contextmanager
def database_path() -> Generator[Path]:
    """Return a path for a database on the disk of temporary files."""
    with tempfile.TemporaryDirectory(prefix="sessionmgr-bench-") as directory:
        yield Path(directory) / "s.db"


def batch(session_id: str, first: int, size: int) -> Append:
    """Return a batch of events without a run."""
    rows = tuple(
        EventRow(seq, None, "message_streamed", BODY) for seq in range(first, first + size)
    )
    return Append(
        session_id=session_id, fence=1, batch=f"bat_{first}", first=first, at=1, rows=rows
    )
