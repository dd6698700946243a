"""Ids with a prefix that names their kind: `ses_`, `run_`, `snp_`, `bat_`."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

ALPHABET: Final = (
    "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no letters that look like digits
)
LENGTH: Final = 20  # 100 bits
_PAIRS: Final = tuple(first + second for first in ALPHABET for second in ALPHABET)
_PLACES: Final = tuple(range(5 * LENGTH - 10, -1, -10))


class IdKind(StrEnum):
    """The kind of object that an id identifies: the id's prefix."""

    SESSION = "ses"
    RUN = "run"
    SNAPSHOT = "snp"
    BATCH = "bat"
    MESSAGE = "msg"
    APPROVAL = "apr"


class _RandomBits:
    """Source of random bits that reads for many ids at once: a system call is slow."""

    def __init__(self) -> None:
        self._numbers: list[int] = []
        os.register_at_fork(
            after_in_child=self._numbers.clear
        )  # otherwise both processes make the same ids

    def __call__(self, bits: int) -> int:
        while True:
            try:
                return self._numbers.pop() >> (8 * _WIDE - bits)
            except IndexError:  # empty, or another thread has taken the last one
                block = os.urandom(_AT_ONCE * _WIDE)
                places = range(0, len(block), _WIDE)
                self._numbers += [int.from_bytes(block[at : at + _WIDE], "big") for at in places]


_WIDE: Final = 13  # bytes, enough for 5 * LENGTH bits
_AT_ONCE: Final = 64


def new_id(kind: IdKind, bits: Callable[[int], int] = _RandomBits()) -> str:  # noqa: B008  # one for all
    """Make an id of `kind`; a simulation passes its own source of `bits`."""
    number = bits(5 * LENGTH)
    pairs = [_PAIRS[number >> place & 1023] for place in _PLACES]
    return f"{kind}_{''.join(pairs)}"


def id_kind(identifier: str) -> IdKind | None:
    """Return the kind of `identifier` by its prefix; None if it has no known prefix."""
    prefix, _, rest = identifier.partition("_")
    return IdKind(prefix) if rest and prefix in list(IdKind) else None
