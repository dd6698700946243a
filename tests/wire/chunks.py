"""Ways to cut a stream of bytes into reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def cut(data: bytes, places: Sequence[int]) -> Iterator[bytes]:
    """Cut at these places, taken round the end; some pieces may be empty."""
    edges = sorted(place % (len(data) + 1) for place in places)
    for begin, end in zip([0, *edges], [*edges, len(data)], strict=True):
        yield data[begin:end]


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    """Cut into pieces of one size."""
    for begin in range(0, len(data), size):
        yield data[begin : begin + size]
