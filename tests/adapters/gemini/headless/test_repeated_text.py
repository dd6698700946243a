"""Text that Gemini writes again after a hidden retry is shown once."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from sessionmgr_adapters.gemini.headless.repeated_text import RETRY_DELAYS, RepetitionFilter

TEXTS = st.text(alphabet="ab \n", max_size=30)
CUTS = st.lists(st.integers(0, 30), max_size=5)
Piece = tuple[str, float | None]


def shown(pieces: list[Piece], *, failed: bool = False) -> str:
    """Return everything that is shown of pieces, each with its time."""
    repeats = RepetitionFilter()
    said = [repeats.feed(text, at) for text, at in pieces]
    return "".join([*said, repeats.end(failed=failed)])


def pieces_of(text: str, cuts: list[int], at: float) -> list[Piece]:
    """Return a text in pieces, written one hundredth of a second apart."""
    places = sorted({0, len(text), *(each for each in cuts if each < len(text))})
    texts = [text[a:b] for a, b in pairwise(places)]
    return [(each, at + number / 100) for number, each in enumerate(texts)]


@given(text=TEXTS, cuts=CUTS)
def test_text_without_pauses_is_shown_as_it_is(text: str, cuts: list[int]) -> None:
    assert shown(pieces_of(text, cuts, 5.0)) == text


@given(pieces=st.lists(TEXTS, max_size=8))
def test_text_without_times_is_shown_as_it_is(pieces: list[str]) -> None:
    assert shown([(each, None) for each in pieces]) == "".join(pieces)


@given(
    text=TEXTS,
    tries=st.lists(st.tuples(st.integers(0, 30), CUTS), max_size=len(RETRY_DELAYS)),
    cuts=CUTS,
)
def test_however_often_an_answer_breaks_off_its_text_is_shown_once(
    text: str, tries: list[tuple[int, list[int]]], cuts: list[int]
) -> None:
    pieces: list[Piece] = []
    at = 0.0
    for number, (length, at_cuts) in enumerate(tries):
        pieces += pieces_of(text[:length], at_cuts, at)
        at += RETRY_DELAYS[number] + 1.0
    assert shown([*pieces, *pieces_of(text, cuts, at)]) == text


@given(pieces=st.lists(st.tuples(TEXTS, st.floats(0, 9)), max_size=8))
def test_only_a_repetition_is_held_back(pieces: list[tuple[str, float]]) -> None:
    at, timed = 0.0, list[Piece]()
    for text, pause in pieces:
        at += pause
        timed.append((text, at))
    whole, seen = "".join(text for text, _ in pieces), shown(timed)
    rest = iter(whole)
    assert all(each in rest for each in seen)  # nothing is added or moved
    if not any(pause >= RETRY_DELAYS[0] - 0.1 for _, pause in pieces):
        assert seen == whole


@pytest.mark.parametrize(
    ("pieces", "seen"),
    [
        ([("ha ", 0.0), ("ha ", 0.5), ("ha", 0.9)], "ha ha ha"),
        ([("One. ", 0.0), ("Two.", 2.0)], "One. Two."),
        ([("One, two", 0.0), ("One, t", 2.0), ("hree", 2.1)], "One, twoOne, three"),
        ([("Yes and no", 0.0), ("Yes", 2.0)], "Yes and noYes"),
        ([("Yes", 0.0), ("Yes", 2.0)], "Yes"),
        ([("ab", 0.0), ("ab", 1.0), ("ab", 2.5)], "abab"),  # the second retry comes later
        ([("ab", 0.0), ("ab", 1.0), ("ab", 3.0), ("ab", 7.0), ("ab", 99.0)], "abab"),
    ],
)
def test_time_and_text_decide(pieces: list[Piece], seen: str) -> None:
    assert shown(pieces) == seen


def test_the_cut_text_of_a_last_retry_is_not_shown_again() -> None:
    pieces: list[Piece] = [("Yes and no", 0.0), ("Yes", 2.0)]
    assert shown(pieces, failed=True) == "Yes and no"


def test_each_message_is_judged_by_itself() -> None:
    repeats = RepetitionFilter()
    assert repeats.feed("Well. ", 0.0) == "Well. "
    assert repeats.end() == ""
    assert repeats.feed("Well. ", 5.0) == "Well. "
