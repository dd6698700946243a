"""A dictionary of bounded size that drops its oldest entry."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, TypeVar

K = TypeVar("K")
V = TypeVar("V")

MAX_ENTRIES: Final = 4096
"""Default maximum number of entries (threads)."""


class BoundedDict(OrderedDict[K, V]):
    """A dictionary that keeps only the entries that were set last."""

    def __init__(self, limit: int = MAX_ENTRIES) -> None:
        super().__init__()
        self._limit: Final = limit

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        while len(self) > self._limit:
            self.popitem(last=False)
