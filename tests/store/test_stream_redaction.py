"""The cuts between pieces do not affect redaction."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import example, given, strategies as st

from sessionmgr.store.key_patterns import LONGEST_BEGINNING
from sessionmgr.store.redaction import REDACTED, Redactor, StreamRedaction
from tests.store.test_redaction import HARMLESS, KEYS

SECRETS = [
    "q7Zk-abcd1234EFGH-9876",
    'quo"ted\\slash/e\n',
    "abcdefg-1",
    "abcdefg-1-and-more",
    "1-1-1-2abc",
]
REDACTOR = Redactor(SECRETS)
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.a-b_c/d+e=="
IN_JSON = [msgspec.json.encode(each).decode()[1:-1] for each in SECRETS]
PARTS = [
    *(*SECRETS, *KEYS, *IN_JSON, TOKEN, f"Bearer {TOKEN}"),
    *(key[: len(key) // 2] for key in KEYS),
    *(secret[:5] for secret in SECRETS),
    *HARMLESS,
    *(
        "Bearer ",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "-----",
        "\\n",
        "\\u0041",
    ),
    *(" ", "s", "sk-", "A", "AK", "x", "g", "a", "1", ".", "\n", '"', "z" * 90, "the end"),
]
TEXTS = st.lists(st.sampled_from(PARTS) | st.text(max_size=4), max_size=6).map("".join)


def cut(text: str, cuts: list[int]) -> list[str]:
    places = sorted({0, len(text), *(each % (len(text) + 1) for each in cuts)})
    return [text[begin:end] for begin, end in pairwise(places)]


def passed_on(pieces: list[str], redactor: Redactor = REDACTOR) -> list[str]:
    patterns, stream, found = redactor.text, StreamRedaction(), list[str]()
    for piece in pieces:
        found.append(
            piece if stream.accept_unchanged(piece, patterns) else stream.add(piece, patterns)
        )
    return [*found, stream.close(patterns)]


@given(text=TEXTS, cuts=st.lists(st.integers(0, 500), max_size=12))
@example(text="The key is q7Zk-abcd1234EFGH-9876 indeed", cuts=[13, 17, 20])
@example(text=f"Bearer {TOKEN}Bearer {TOKEN}", cuts=[len(TOKEN) + 8])
@example(text=f"-----BEGIN CERTIFICATE----- Bearer {TOKEN}", cuts=[40])
@example(text="-----BEGIN PRIVATE KEY-----END PRIVATE KEY----- x", cuts=[27])
def test_what_is_passed_on_is_the_redaction_of_the_whole(text: str, cuts: list[int]) -> None:
    found = passed_on(cut(text, cuts))
    assert "".join(found) == REDACTOR.text.pattern.sub(REDACTED, text)


@given(text=TEXTS, cuts=st.lists(st.integers(0, 500), max_size=12))
def test_neither_a_piece_nor_all_of_them_hold_a_secret(text: str, cuts: list[int]) -> None:
    found = passed_on(cut(text, cuts))
    for said in ("".join(found), *found):
        assert not [secret for secret in SECRETS if secret in said]


@given(text=st.lists(st.sampled_from(PARTS), max_size=6).map("".join))
def test_a_text_loses_the_same_as_the_record_that_it_stands_in(text: str) -> None:
    record = REDACTOR.redact(msgspec.json.encode(text))
    assert msgspec.json.decode(record) == REDACTOR.text.redact(text)


@given(text=TEXTS, cuts=st.lists(st.integers(0, 500), max_size=12))
def test_what_is_held_back_is_no_longer_than_a_secrets_beginning(
    text: str, cuts: list[int]
) -> None:
    stream = StreamRedaction()
    longest = max(LONGEST_BEGINNING, *(2 * len(each) for each in SECRETS))
    for piece in cut(text, cuts):
        stream.add(piece, REDACTOR.text)
        assert stream.held <= longest


@pytest.mark.parametrize("text", ["Hello, wor", "All of it.", "is_a_word ", "Yes", "mask"])
def test_what_cannot_become_a_secret_is_passed_on_at_once(text: str) -> None:
    stream = StreamRedaction()
    assert stream.accept_unchanged(text, REDACTOR.text)
    assert stream.add(text, REDACTOR.text) == text


@pytest.mark.parametrize(
    ("text", "held"),
    [("it is q7Zk", "q7Zk"), ("the A", "A"), ("a sk", "sk"), ("x ghp_abc", "ghp_abc")],
)
def test_only_the_end_that_may_become_one_is_held_back(text: str, held: str) -> None:
    stream = StreamRedaction()
    assert not stream.accept_unchanged(text, REDACTOR.text)
    assert stream.add(text, REDACTOR.text) + held == text
    assert stream.close(REDACTOR.text) == held


def test_a_key_without_end_is_replaced_at_once_and_not_kept() -> None:
    stream = StreamRedaction()
    assert stream.add(f"is {KEYS[0]}", REDACTOR.text) == f"is {REDACTED}"
    for _ in range(1000):
        assert stream.add("0123456789abcdef", REDACTOR.text) == ""
    assert stream.held == 0
    assert stream.add(". The rest", REDACTOR.text) == ". The rest"
