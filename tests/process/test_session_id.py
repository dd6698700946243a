from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from sessionmgr.process import ProcessError, SessionIdInvalid
from sessionmgr.process.session_id import validate_session_id


@pytest.mark.parametrize(
    "id_", ["9480d611-136c-4184", "T-01a1ee71", "ses_e117ca441ffejdL2", "a/b c:d=e", "größe", "0"]
)
def test_ids_of_real_providers_pass_unchanged(id_: str) -> None:
    assert validate_session_id(id_) == id_


@pytest.mark.parametrize(
    ("id_", "why"),
    [
        ("", "blank"),
        (" \t\n", "blank"),
        ("-p", "like an option"),
        ("--dangerously-skip-permissions", "like an option"),
        (" -p", "white space"),
        ("a\n", "white space"),
        ("a\0b", "control character"),
        ("a\nb", "control character"),
        ("a\x1b[0mb", "control character"),
        ("a\x7f", "control character"),
        ("a\x85b", "control character"),
        ("a\u202eb", "control character"),
        ("a\u2028b", "control character"),
        ("a\ud800", "control character"),
        ("x" * 1025, "1025 characters"),
    ],
)
def test_what_could_be_an_option_or_cannot_be_seen_is_refused(id_: str, why: str) -> None:
    with pytest.raises(SessionIdInvalid, match=why) as caught:
        validate_session_id(id_)
    assert caught.value.given == id_
    assert isinstance(caught.value, (ProcessError, ValueError))


@given(st.text())
def test_what_passes_can_stand_alone_on_a_command_line(id_: str) -> None:
    try:
        passed = validate_session_id(id_)
    except SessionIdInvalid:
        return
    assert passed == id_ == id_.strip() != ""
    assert not passed.startswith("-")
    assert not any(ord(character) < 32 for character in passed)
    passed.encode()  # no half of a surrogate pair
