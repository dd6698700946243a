"""A table of bounded size: what was put into it longest ago is forgotten."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, TypeVar

K = TypeVar("K")
V = TypeVar("V")

KEPT: Final = 4096
"""Threads of which something is remembered."""


class BoundedDict(OrderedDict[K, V]):
    """The values that were put in last."""

    def __init__(self, kept: int = KEPT) -> None:
        super().__init__()
        self._kept: Final = kept

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        while len(self) > self._kept:
            self.popitem(last=False)
