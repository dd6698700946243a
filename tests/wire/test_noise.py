from __future__ import annotations

import time

import pytest
from hypothesis import given, strategies as st

from sessionmgr.wire.noise import strip_wrapping
from sessionmgr.wire.terminal_escapes import strip_escapes

FRAME = b'{"type":"result"}'


@pytest.mark.parametrize(
    "noise",
    [
        b"Welcome to the nix development shell",
        b"",
        b"   ",
        b"\xef\xbb\xbf",
        b"[INFO] ready",
        b"[12:30:01] ready",
        b"[1] 4711",
        b"(node:12) Warning: punycode",
        b"\x1b[33mwarning\x1b[0m: old version",
        b"\x1b]0;title\x07",
        b"\x1b[2K\x1b[1G",
        b"null",
        b"42",
        b'"a string"',
        b'debug: sent {"type":"result"}',
        b'got {"type":"result"}',
        b"\xff\xfe\x00",
        b"\x1b",
    ],
)
def test_what_does_not_begin_like_a_frame_is_noise(noise: bytes) -> None:
    assert strip_wrapping(noise) is None


@pytest.mark.parametrize(
    "broken",
    [
        b"{",
        b'{"type":',
        b"{not json}",
        b"[",
        b'[{"id":1',
        b"[ [",
        b'["a",',
        b"[]",
        b'{"a":"\xff"}',
    ],
)
def test_what_begins_like_a_frame_is_meant_to_be_one_however_it_goes_on(broken: bytes) -> None:
    assert strip_wrapping(broken) == broken


@pytest.mark.parametrize(
    "before", [b"", b"\xef\xbb\xbf", b" \t", b"\r", b"\x1b[0m", b"\x1b]0;claude\x07", b"\x1b[?25l "]
)
@pytest.mark.parametrize("behind", [b"", b" ", b"\x1b[0m", b"\x1b[0m\r", b"\x1b]8;;\x1b\\"])
def test_a_frame_is_found_in_what_a_terminal_would_not_show(before: bytes, behind: bytes) -> None:
    assert strip_wrapping(before + FRAME + behind) == FRAME


def test_text_behind_a_frame_is_kept_so_that_it_shows_as_malformed() -> None:
    assert strip_wrapping(b"\x1b[0m" + FRAME + b" trailing") == FRAME + b" trailing"


def test_what_stands_in_a_frame_is_not_touched() -> None:
    assert strip_wrapping(b' {"a":"\x1b[1mbold"}') == b'{"a":"\x1b[1mbold"}'


@given(st.binary())
def test_any_bytes_get_an_answer_that_is_a_part_of_them(line: bytes) -> None:
    found = strip_wrapping(line)
    assert found is None or (found in line and found[:1] in (b"{", b"["))


@given(st.lists(st.sampled_from([b"\x1b", b"[", b"]", b"3", b"m", b"\x07", b"P", b"\\", b"{"])))
def test_removing_escapes_leaves_nothing_to_remove_but_what_it_brought_together(
    parts: list[bytes],
) -> None:
    text = b"".join(parts)
    left = strip_escapes(text)
    assert len(left) <= len(text)
    assert b"\x1b" in text or left == text


@pytest.mark.parametrize("part", [b"\x1b", b"\x1b]", b"\x1b[", b"\x1b[3", b"\x1bP", b" ", b"{["])
def test_a_megabyte_of_beginnings_takes_linear_time(part: bytes) -> None:
    def cost(size: int) -> float:
        line = part * (size // len(part))
        best = float("inf")
        for _ in range(3):
            begin = time.process_time()
            strip_wrapping(line)
            strip_escapes(line)
            best = min(best, time.process_time() - begin)
        return best

    # Quadratic would be 100 times as much.
    assert cost(1_000_000) < 40 * cost(100_000) + 0.05


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (b"\x1b[1;31merror\x1b[0m", b"error"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x07", b"link"),
        (b"\x1b(Bplain\x1bM", b"plain"),
        (b"\x1bPq#0\x1b\\after", b"after"),
        (b"no end \x1b]0;title", b"no end \x1b]0;title"),
        (b"50 % \x1b", b"50 % \x1b"),
    ],
)
def test_escape_sequences_are_removed_and_their_text_stays(text: bytes, left: bytes) -> None:
    assert strip_escapes(text) == left
