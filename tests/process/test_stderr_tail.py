from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, strategies as st

from sessionmgr.process.stderr_tail import StderrTail


def tail_of(*parts: bytes, limit: int = 1000) -> StderrTail:
    tail = StderrTail(limit)
    for part in parts:
        tail.feed(part)
    return tail


@given(
    parts=st.lists(st.text(st.characters(codec="ascii", categories=["L", "N"]))),
    limit=st.integers(1, 9),
)
def test_the_last_bytes_are_kept_whatever_the_pieces(parts: list[str], limit: int) -> None:
    tail = tail_of(*(part.encode() for part in parts), limit=limit)
    assert tail.text() == "".join(parts)[-limit:]
    assert tail.bytes_seen == sum(map(len, parts))


def test_a_flood_takes_no_more_memory_than_the_tail() -> None:
    tail = StderrTail(10_000)
    flood = b"x" * 65536
    tracemalloc.start()
    try:
        for _ in range(500):
            tail.feed(flood)
            tail.feed(bytearray(b"y"))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 50_000
    assert tail.text() == "x" * 9_999 + "y"
    assert tail.bytes_seen == 500 * 65537


def test_a_character_that_the_cut_has_split_is_left_out() -> None:
    for limit in (1, 2, 3):
        assert tail_of("a€".encode(), b"b", limit=limit).text() == "b"
    assert tail_of("a€".encode(), b"b", limit=4).text() == "€b"
    assert tail_of(b"\x80\x80", limit=9).text() == "\ufffd\ufffd"


def test_bad_utf_8_is_replaced_and_colours_are_left_out() -> None:
    assert tail_of(b"\x1b[31mno\xff\x1b[0m").text() == "no\ufffd"


def test_the_short_form_is_the_end_from_the_start_of_a_line() -> None:
    assert tail_of(b"  one\ntwo\r\n\n").short() == "one\ntwo"
    assert tail_of(b"a" * 150 + b"\n" + b"b" * 100).short() == "b" * 100
    assert tail_of(b"first\n" + b"b" * 200).short() == "b" * 200
    assert tail_of(b"first " + b"b" * 300).short() == "b" * 200
    assert tail_of(b"x" * 300 + b"\n\n").short() == "x" * 200
    assert tail_of(b"\x00\x07 \x1b").short() == ""
    assert tail_of().short() == ""


def test_the_short_form_begins_with_no_part_of_a_word() -> None:
    said = b"no such key: hunter2-and-more-0123456789, " + b"and so on " * 19
    assert "0123456789" not in tail_of(said).short()
    assert tail_of(said).short().startswith("and so on")
    assert tail_of(b"x " * 200).short() == ("x " * 100).strip()


@given(st.binary(max_size=600), st.integers(1, 200))
def test_the_short_form_is_never_longer_than_asked(data: bytes, most: int) -> None:
    short = tail_of(data).short(most)
    assert len(short) <= most
    assert short == short.strip()


def test_a_tail_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="limit=0"):
        StderrTail(0)


@given(
    before=st.text("ab \n", max_size=60),
    after=st.text("ab \n", max_size=30),
    cuts=st.lists(st.integers(1, 9), min_size=1, max_size=99),
)
def test_no_part_of_a_secret_is_kept_wherever_the_tail_is_cut(
    before: str, after: str, cuts: list[int]
) -> None:
    secret = "0123456789\nXYZ"  # no longer than the tail
    said = f"{before}{secret}{after}".encode()
    tail = StderrTail(20)
    while said:
        size = cuts[len(said) % len(cuts)]
        tail.feed(said[:size])
        said = said[size:]
    kept = tail.text(lambda text: text.replace(secret, "*"))
    assert not set(secret) - {"\n"} & set(kept)
    whole = f"{before}*{after}"
    assert whole.endswith(kept)
    assert len(kept) == min(20, len(whole))


def test_a_tail_full_of_secrets_does_not_begin_with_the_end_of_one() -> None:
    tail = tail_of(b"0123456789\n" * 100, limit=20)
    kept = tail.text(lambda text: text.replace("0123456789", "*"))
    assert set(kept) == set("*\n")
