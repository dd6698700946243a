from __future__ import annotations

import tracemalloc
from collections.abc import Iterable

import pytest
from hypothesis import example, given, strategies as st

from sessionmgr.wire.lines import Line, LineDecoder
from sessionmgr.wire.oversized import HEAD, LIMIT, OversizedFrame
from tests.wire.chunks import cut, pieces

# Few different bytes, so that newlines, blanks and long lines meet often.
BYTES = st.lists(st.sampled_from([b"\n", b"\r\n", b"\r", b" ", b"a", b'{"', "€".encode(), b"\0"]))
STREAM = BYTES.map(b"".join)


def read(parts: Iterable[bytes | bytearray], limit: int = LIMIT) -> list[Line]:
    decoder = LineDecoder(limit)
    found = [line for part in parts for line in decoder.feed(part)]
    return [*found, *decoder.close()]


def naive(data: bytes, limit: int) -> list[Line]:
    """What a line is, said in the simplest way."""
    found: list[Line] = []
    for line in data.split(b"\n"):
        if len(line) > limit:
            found.append(OversizedFrame(len(line), line[: min(HEAD, limit)]))
        elif line.strip():
            found.append(line.removesuffix(b"\r"))
    return found


@given(data=STREAM, cuts=st.lists(st.integers(0, 60)), limit=st.integers(1, 9))
@example(data=b"a\r\nb", cuts=[2], limit=9)
@example(data=b"aaaaaa\r\n", cuts=[7], limit=6)
def test_where_the_bytes_are_cut_does_not_matter(data: bytes, cuts: list[int], limit: int) -> None:
    assert read(cut(data, cuts), limit) == naive(data, limit)


@given(data=STREAM, limit=st.integers(1, 9))
def test_every_single_cut_and_every_size_of_pieces_gives_the_same(data: bytes, limit: int) -> None:
    whole = naive(data, limit)
    for place in range(len(data) + 1):
        assert read([data[:place], data[place:]], limit) == whole
    for size in range(1, len(data) + 1):
        assert read(pieces(data, size), limit) == whole


@given(data=STREAM, cuts=st.lists(st.integers(0, 60)))
def test_a_bytearray_is_as_good_as_bytes(data: bytes, cuts: list[int]) -> None:
    lines = read(map(bytearray, cut(data, cuts)))
    assert lines == naive(data, LIMIT)
    assert all(type(line) is bytes for line in lines)


def test_one_read_gives_one_batch() -> None:
    decoder = LineDecoder()
    assert decoder.feed(b"a\nb\nc") == [b"a", b"b"]
    assert decoder.feed(b"c\nd") == [b"cc"]
    assert decoder.feed(b"d") == []
    assert decoder.feed(b"\n") == [b"dd"]
    assert decoder.close() == []


def test_a_character_cut_in_two_comes_out_whole() -> None:
    data = "größer → 𝄞\n".encode()
    for place in range(len(data)):
        assert read([data[:place], data[place:]]) == [data[:-1]]


def test_blank_lines_are_skipped_and_white_space_within_a_line_is_kept() -> None:
    assert read([b"\n\r\n  \n\t\r\n a \r\n\x0b\n"]) == [b" a "]


def test_a_carriage_return_that_ends_no_line_is_kept() -> None:
    assert read([b"a\rb\n\rc\n"]) == [b"a\rb", b"\rc"]


def test_a_last_line_without_a_newline_comes_at_the_close_and_only_once() -> None:
    decoder = LineDecoder()
    assert decoder.feed(b'{"half":') == []
    assert decoder.close() == [b'{"half":']
    assert decoder.close() == []
    assert read([b"a\r"]) == [b"a"]


def test_a_line_over_the_limit_is_one_thing_in_its_place_and_what_follows_is_whole() -> None:
    long = b"x" * 5000
    lines = read(pieces(b"first\n" + long + b"\nlast\n", 7), limit=4999)
    assert lines == [b"first", OversizedFrame(5000, b"x" * HEAD), b"last"]
    assert read([b"first\n" + long + b"\nlast\n"], limit=5000) == [b"first", long, b"last"]


def test_of_an_oversized_line_no_more_than_its_head_is_held() -> None:
    decoder = LineDecoder(limit=2000)
    chunk = b"y" * 100_000
    tracemalloc.start()
    try:
        for _ in range(100):
            assert decoder.feed(chunk) == []
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 20_000
    assert decoder.feed(b"\nnext\n") == [OversizedFrame(10_000_000, b"y" * HEAD), b"next"]


def test_an_oversized_line_that_nothing_ended_is_told_at_the_close() -> None:
    assert read([b"aaaa"], limit=3) == [OversizedFrame(4, b"aaa")]


def test_a_line_of_64_mib_passes_by_default_and_a_byte_more_does_not() -> None:
    chunk = b"z" * 65536
    decoder = LineDecoder()
    for _ in range(1024):
        assert decoder.feed(chunk) == []
    (line,) = decoder.feed(b"\n")
    assert isinstance(line, bytes)
    assert len(line) == 64 * 1024 * 1024
    for _ in range(1024):
        assert decoder.feed(chunk) == []
    assert decoder.feed(b"z\n") == [OversizedFrame(64 * 1024 * 1024 + 1, b"z" * HEAD)]


def test_a_limit_below_one_byte_is_refused() -> None:
    with pytest.raises(ValueError, match="limit=0"):
        LineDecoder(limit=0)
