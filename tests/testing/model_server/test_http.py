from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from sessionmgr.testing.model_server.http import (
    BadRequest,
    HttpRequest,
    RequestDecoder,
    answer_head,
    chunk,
)

WIRE = (
    b"\r\nPOST /v1/messages?beta=true HTTP/1.1\r\nHost: here\r\nContent-Length: 5\r\n\r\nhello"
    b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5;much=more\r\nhello\r\n6\r\n world\r\n0\r\nTrailer: yes\r\n\r\n"
    b"HEAD / HTTP/1.0\r\n\r\n"
    b"GET http://elsewhere/ HTTP/1.1\r\nConnection: close\r\n\r\n"
)


def requests(data: bytes, cuts: list[int]) -> list[HttpRequest]:
    decoder = RequestDecoder()
    found: list[HttpRequest] = []
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for start, end in pairwise(edges):
        decoder.feed(data[start:end])
        while (request := decoder.next()) is not None:
            found.append(request)
    assert not decoder.unfinished
    return found


@given(cuts=st.lists(st.integers(0, len(WIRE)), max_size=20))
def test_where_the_bytes_are_cut_does_not_matter(cuts: list[int]) -> None:
    found = requests(WIRE, cuts)
    assert [each.method for each in found] == ["POST", "POST", "HEAD", "GET"]
    assert [each.body for each in found] == [b"hello", b"hello world", b"", b""]
    assert [each.keep_alive for each in found] == [True, True, False, False]
    assert found[0].path == "/v1/messages"
    assert found[0].headers == {"host": "here", "content-length": "5"}


def test_a_client_that_waits_for_a_word_gets_it_once() -> None:
    decoder = RequestDecoder()
    decoder.feed(b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n")
    assert decoder.next() is None
    assert decoder.wants_continue
    decoder.feed(b"x")
    assert decoder.next() is not None
    assert not decoder.wants_continue


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/2\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno header\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: many\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 999999999999\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\n", 413),
        (b"GET /" + b"x" * 300_000, 431),
    ],
)
def test_what_is_no_request_is_refused(data: bytes, status: int) -> None:
    decoder = RequestDecoder()
    decoder.feed(data)
    with pytest.raises(BadRequest) as refused:
        decoder.next()
    assert refused.value.status == status


def test_an_answer_has_a_length_or_comes_in_chunks() -> None:
    assert answer_head(200, [("a", "b")], length=3) == (
        b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\na: b\r\n\r\n"
    )
    assert answer_head(529) == b"HTTP/1.1 529 Unknown\r\ntransfer-encoding: chunked\r\n\r\n"
    assert chunk(b"x" * 17) == b"11\r\n" + b"x" * 17 + b"\r\n"
    assert chunk(b"") == b""
