"""Probe: whether another connection holds a store's write lock."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from sessionmgr.store.sqlite.error_translation import BUSY, error_code

if TYPE_CHECKING:
    from pathlib import Path


def is_locked(path: Path) -> bool:
    """Return whether the lock is held, without waiting for it; False if unknown."""
    place = f"{path.absolute().as_uri()}?mode=rw"
    try:
        with closing(sqlite3.connect(place, timeout=0, isolation_level=None, uri=True)) as probe:
            probe.execute("BEGIN IMMEDIATE")
            probe.execute("ROLLBACK")
    except sqlite3.Error as error:
        return error_code(error) in BUSY
    return False
