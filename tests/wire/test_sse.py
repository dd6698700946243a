from __future__ import annotations

import re
import time
from collections.abc import Iterable

import pytest
from hypothesis import example, given, strategies as st

from sessionmgr.wire.oversized import HEAD, LIMIT, OversizedFrame
from sessionmgr.wire.sse import IncompleteEvent, ServerEvent, ServerEventDecoder, SseItem
from tests.wire.chunks import cut, pieces

ENDS = ["\n", "\r", "\r\n", "\n\n"]
FIELDS = ["data", "data:", "data: x", "id: 7", "id:\0", "event:e", "retry: 50", "retry: x"]
ODD = [":", ":c", "€", "unknown: y", "\ufeff", "data:\ufeff", " ", "xxxx", "\0"]
STREAM = st.lists(st.sampled_from([*ENDS, *FIELDS, *ODD]), max_size=30).map(
    lambda parts: "".join(parts).encode()
)

All = list[SseItem | IncompleteEvent]


def read(parts: Iterable[bytes | bytearray], limit: int = LIMIT) -> tuple[All, str, int | None]:
    decoder = ServerEventDecoder(limit)
    found: All = [event for part in parts for event in decoder.feed(part)]
    last = decoder.close()
    return [*found, last] if last is not None else found, decoder.last_id, decoder.retry


def naive(data: bytes) -> tuple[All, str, int | None]:
    """What an event stream is, said in the simplest way; without a limit."""
    text = data.decode(errors="replace").removeprefix("\ufeff")
    lines = re.split("\r\n|\r|\n", text)
    found: All = []
    name, data_lines, id_, retry, touched = "", list[str](), "", None, False
    for number, line in enumerate(lines):
        last = number == len(lines) - 1
        if line and not line.startswith(":"):
            touched = True
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "data":
                data_lines.append(value)
            elif field == "event":
                name = value
            elif field == "id" and "\0" not in value:
                id_ = value
            elif field == "retry" and re.fullmatch("[0-9]{1,15}", value):
                retry = int(value)
        joined = "\n".join(data_lines).encode()
        if last and touched:
            found.append(IncompleteEvent(name or "message", joined))
        elif not last and not line:
            if data_lines:
                found.append(ServerEvent(name or "message", joined, id_))
            name, data_lines, touched = "", [], False
    return found, id_, retry


@given(data=STREAM, cuts=st.lists(st.integers(0, 200)))
@example(data=b"data: a\r\n\r\ndata: b\r\n\r\n", cuts=[8, 10])
@example(data=b"\r\ndata:x\r\r\n", cuts=[1, 9, 10])
@example(data="\ufeffdata: a\n\n".encode(), cuts=[1, 2])
def test_where_the_bytes_are_cut_does_not_matter(data: bytes, cuts: list[int]) -> None:
    assert read(cut(data, cuts)) == naive(data)


@given(data=STREAM)
def test_every_single_cut_and_every_size_of_pieces_gives_the_same(data: bytes) -> None:
    whole = naive(data)
    for place in range(len(data) + 1):
        assert read([data[:place], data[place:]]) == whole
    for size in range(1, len(data) + 1):
        assert read(pieces(data, size)) == whole


@given(data=STREAM, cuts=st.lists(st.integers(0, 200)), limit=st.integers(1, 24))
@example(data="\ufeffdata\ndata".encode(), cuts=[], limit=7)
@example(data="\ufeff".encode()[:2], cuts=[1], limit=1)
def test_the_cut_does_not_matter_to_what_is_too_long_either(
    data: bytes, cuts: list[int], limit: int
) -> None:
    assert read(cut(data, cuts), limit) == read([data], limit)
    assert read(map(bytearray, pieces(data, 1)), limit) == read([data], limit)


def test_a_byte_order_mark_does_not_count_towards_the_limit() -> None:
    stream = "\ufeffdata: ab\n\n".encode()
    for parts in ([stream], pieces(stream, 1)):
        assert read(parts, limit=8)[0] == [ServerEvent("message", b"ab", "")]


def test_an_event_of_many_lines_is_joined_by_newlines() -> None:
    stream = b"event: add\ndata: one\ndata:two\ndata:  three\ndata\nid: 5\n\n"
    assert read([stream])[0] == [ServerEvent("add", b"one\ntwo\n three\n", "5")]


def test_an_event_without_data_is_none_and_empty_data_is_data() -> None:
    assert read([b"event: x\nid: 1\n\n"]) == ([], "1", None)
    assert read([b"data\n\ndata:\n\n"])[0] == [ServerEvent("message", b"", "")] * 2


def test_the_name_is_for_one_event_and_the_id_for_all_that_follow() -> None:
    stream = b"event: a\nid: 1\ndata: x\n\ndata: y\n\nid\ndata: z\n\n"
    assert read([stream])[0] == [
        ServerEvent("a", b"x", "1"),
        ServerEvent("message", b"y", "1"),
        ServerEvent("message", b"z", ""),
    ]


def test_comments_say_nothing_and_count_for_nothing() -> None:
    stream = b": OPENROUTER PROCESSING\n\n" * 100 + b"data: x\n" + b":" + b"c" * 999 + b"\n\n"
    for parts in ([stream], pieces(stream, 3)):
        assert read(parts, limit=8)[0] == [ServerEvent("message", b"x", "")]


def test_a_reply_that_was_cut_is_reported_with_what_had_come() -> None:
    assert read([b'event: delta\ndata: {"a":'])[0] == [IncompleteEvent("delta", b'{"a":')]
    assert read([b"data: [DONE]\n"])[0] == [IncompleteEvent("message", b"[DONE]")]
    assert read([b"event: x\n"])[0] == [IncompleteEvent("x", b"")]
    assert read([b"data: x\n\n: bye"])[0] == [ServerEvent("message", b"x", "")]


def test_an_event_over_the_limit_is_one_thing_in_its_place_and_what_follows_is_whole() -> None:
    lines = b"data: " + b"x" * 3000 + b"\n"
    stream = b"data: a\n\n" + lines * 3 + b"\ndata: b\n\n"
    head = (b"data: " + b"x" * 3000)[:HEAD]
    for parts in ([stream], pieces(stream, 7), pieces(stream, 3007)):
        assert read(parts, limit=9017)[0] == [
            ServerEvent("message", b"a", ""),
            OversizedFrame(9018, head),
            ServerEvent("message", b"b", ""),
        ]
    assert OversizedFrame not in map(type, read([stream], limit=9018)[0])


def test_an_event_too_long_that_nothing_ended_is_told_at_the_close() -> None:
    assert read([b"data: xxxx"], limit=9)[0] == [OversizedFrame(10, b"data: xxx")]


def test_a_time_to_wait_is_a_plain_number() -> None:
    assert read([b"retry: 1500\n\n"])[2] == 1500
    for odd in (b"-1", b"1.5", b"", b"1 ", "²".encode(), b"9" * 5000):
        assert read([b"retry: " + odd + b"\n\n"])[2] is None


def test_a_long_event_takes_linear_time_however_small_the_reads() -> None:
    def cost(size: int) -> float:
        best = float("inf")
        for _ in range(3):
            parts = list(pieces(b"data: " + b"x" * size + b"\n\n", 16))
            begin = time.process_time()
            assert len(read(parts)[0]) == 1
            best = min(best, time.process_time() - begin)
        return best

    # Quadratic would be 64 times as much.
    assert cost(1_600_000) < 24 * cost(200_000)


def test_a_limit_below_one_byte_is_refused() -> None:
    with pytest.raises(ValueError, match="limit=0"):
        ServerEventDecoder(limit=0)
