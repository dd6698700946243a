"""Random numbers of a simulation: one seed, and a name for each independent stream."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")


class SeededRandom(random.Random):
    """Random stream of one participant, independent of all other streams."""

    def __init__(self, seed: int, *names: object) -> None:
        super().__init__(f"{seed}/{'/'.join(map(str, names))}")

    def once_in(self, times: float) -> bool:
        """Return True once in so many calls."""
        return self.random() * times < 1

    def one_of(self, weighted: Sequence[tuple[T, float]]) -> T:
        """Choose by weight."""
        things, weights = zip(*weighted, strict=True)
        chosen: T = self.choices(things, weights)[0]
        return chosen

    def moment(self, longest: float) -> float:
        """Choose a time span: often zero, often a short one."""
        if self.once_in(5):
            return 0.0
        return round(longest * self.random() ** 3, 3)
