"""Untrusted text cannot control the terminal, and a line has the computed width."""

from itertools import pairwise

import pytest
from hypothesis import example, given, strategies as st

from sessionmgr.cli.terminal.safe_text import (
    SafeStream,
    display_width,
    one_line,
    pad_to_width,
    strip_controls,
    truncate,
)

ODD = "\x1b [ ] 31m 0;title \x07 \x1b\\ \x9b \x9d \x9c P \r \n \t a é 漢 \x00 \x7f \u202e \ud800 ?"
HOSTILE = st.lists(st.sampled_from([*ODD.split(" "), " "])).map("".join)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;owned\x07title", "title"),
        ("\x1b]52;c;cm0gLXJm\x1b\\copied", "copied"),
        ("\x9b31mred", "red"),
        ("\x1bP+q544e\x1b\\asked", "asked"),
        ("\x1b(0box\x1b=", "box"),
        ("over\rwritten\r\n", "over\nwritten\n"),
        ("bell\x07 null\x00 del\x7f", "bell^G null^@ del^?"),
        ("\x1b]never ended", "^[]never ended"),
        ("left\u202etfel", "left\ufffdtfel"),
        ("half\ud800", "half\ufffd"),
        ("tab\tstays", "tab\tstays"),
    ],
)
def test_what_would_move_the_terminal_is_taken_out_or_shown(said: str, shown: str) -> None:
    assert strip_controls(said) == shown


@given(HOSTILE)
def test_nothing_but_text_newlines_and_tabs_goes_through(said: str) -> None:
    shown = strip_controls(said)
    assert not [c for c in shown if c not in "\n\t" and (ord(c) < 32 or 127 <= ord(c) < 160)]
    shown.encode()


@given(said=HOSTILE, cuts=st.lists(st.integers(0, 40)))
@example(said="\r\x1b]\x07\n", cuts=[2])
@example(said="\r\x1b[K\n\n", cuts=[4])
@example(said="\r\n\n", cuts=[1, 2])
def test_where_a_stream_is_cut_does_not_matter(said: str, cuts: list[int]) -> None:
    stream = SafeStream()
    places = [0, *sorted(min(cut, len(said)) for cut in cuts), len(said)]
    pieces = [said[a:b] for a, b in pairwise(places)]
    assert "".join(map(stream.feed, pieces)) + stream.close() == strip_controls(said)


def test_a_sequence_without_an_end_does_not_hold_a_stream_back_for_ever() -> None:
    stream = SafeStream()
    said = "".join(stream.feed("\x1b]" if n == 0 else "x" * 100) for n in range(60))
    assert said.startswith("^[]xxx")


def test_one_line_is_one_line() -> None:
    assert one_line("  a\n\n\tb\x1b[2Jc \r\n") == "a bc"


@pytest.mark.parametrize(
    ("text", "columns"),
    [("", 0), ("abc", 3), ("漢字", 4), ("e\u0301", 1), ("a\u200db", 2), ("é", 1)],
)
def test_a_text_takes_so_many_columns(text: str, columns: int) -> None:
    assert display_width(text) == columns


@given(st.text(st.sampled_from("ab漢é\u0301 ")), st.integers(0, 12))
def test_a_line_is_cut_to_its_width_and_filled_to_it(text: str, width: int) -> None:
    assert display_width(truncate(text, width)) <= width
    assert display_width(pad_to_width(text, width)) == width


def test_what_is_cut_is_said_to_be() -> None:
    assert truncate("abcdef", 4) == "abc…"
    assert truncate("漢字漢字", 4) == "漢…"
    assert truncate("abcd", 4) == "abcd"
