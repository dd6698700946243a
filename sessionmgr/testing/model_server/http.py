"""The server side of HTTP/1.1: a decoder of requests and an encoder of answers; no I/O.

It covers what clients of models need: bodies with a length or in chunks, persistent connections,
answers in chunks, `Expect`. The result does not depend on where the bytes are cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final

import msgspec

MOST_HEAD: Final = 256 << 10
MOST_BODY: Final = 256 << 20
"""Maximum size of a request's body in bytes: it may contain images."""

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK: Final = b"0\r\n\r\n"


class BadRequest(Exception):
    """The bytes are not HTTP, or exceed a limit; the connection cannot be used any more."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class HttpRequest(msgspec.Struct, frozen=True):
    """A request. The names of its headers are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""
    keep_alive: bool = True

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]


class RequestDecoder:
    """A decoder of the requests in a stream of bytes."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._head: HttpRequest | None = None
        self._length: int | None = None
        """The length of the body; None while it comes in chunks."""
        self._chunks = bytearray()
        self.wants_continue = False
        """Whether the client waits for `100 Continue` before it sends the body."""

    def feed(self, data: bytes | bytearray) -> None:
        """Add bytes that were read."""
        self._held += data

    @property
    def unfinished(self) -> bool:
        """Whether an incomplete request is buffered."""
        return bool(self._held) or self._head is not None

    def next(self) -> HttpRequest | None:
        """Return the next complete request, or None.

        Raises:
            BadRequest: The bytes are not a valid request.
        """
        if self._head is None and not self._read_head():
            return None
        assert self._head is not None
        body = self._body()
        if body is None:
            return None
        self.wants_continue = False
        head, self._head = self._head, None
        return msgspec.structs.replace(head, body=body)

    def _read_head(self) -> bool:
        while self._held.startswith(b"\r\n"):  # some clients send an extra newline after a body
            del self._held[:2]
        end = self._held.find(b"\r\n\r\n")
        if end < 0:
            if len(self._held) > MOST_HEAD:
                raise BadRequest(431, f"more than {MOST_HEAD} bytes of headers")
            return False
        head = self._held[:end].decode("latin-1")
        del self._held[: end + 4]
        self._head = _parse_head(head)
        headers = self._head.headers
        self.wants_continue = headers.get("expect", "").lower() == "100-continue"
        self._chunks = bytearray()
        self._length = None
        if "chunked" not in headers.get("transfer-encoding", "").lower():
            self._length = _number(headers.get("content-length", "0"), 10)
            _check_size(self._length)
        return True

    def _body(self) -> bytes | None:
        if self._length is None:
            return self._chunked_body()
        if len(self._held) < self._length:
            return None
        body = bytes(self._held[: self._length])
        del self._held[: self._length]
        return body

    def _chunked_body(self) -> bytes | None:
        while True:
            end = self._held.find(b"\r\n")
            if end < 0:
                return None
            size = _number(self._held[:end].split(b";")[0].decode("latin-1"), 16)
            _check_size(len(self._chunks) + size)
            if size == 0:
                # After the last chunk there may be trailers, and then an empty line.
                last = self._held.find(b"\r\n\r\n", end)
                if last < 0:
                    return None
                del self._held[: last + 4]
                return bytes(self._chunks)
            if len(self._held) < end + 2 + size + 2:
                return None
            self._chunks += self._held[end + 2 : end + 2 + size]
            del self._held[: end + 2 + size + 2]


def _parse_head(head: str) -> HttpRequest:
    first, *lines = head.split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise BadRequest(400, f"invalid request line: {first[:100]!r}")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise BadRequest(400, f"invalid header: {line[:100]!r}")
        headers[name.strip().lower()] = value.strip()
    connection = headers.get("connection", "").lower()
    kept = "keep-alive" in connection if words[2] == "HTTP/1.0" else "close" not in connection
    return HttpRequest(words[0], words[1], headers, keep_alive=kept)


def _number(text: str, base: int) -> int:
    try:
        number = int(text.strip(), base)
    except ValueError:
        number = -1
    if number < 0:
        raise BadRequest(400, f"invalid length: {text[:100]!r}")
    return number


def _check_size(size: int) -> None:
    if size > MOST_BODY:
        raise BadRequest(413, f"a body of more than {MOST_BODY} bytes")


def answer_head(
    status: int, headers: Sequence[tuple[str, str]] = (), *, length: int | None = None
) -> bytes:
    """Return the head of an answer, whose body has `length` bytes or, if None, comes in chunks."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Unknown"
    size = "transfer-encoding: chunked" if length is None else f"content-length: {length}"
    lines = [f"HTTP/1.1 {status} {phrase}", size, *(f"{name}: {value}" for name, value in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def chunk(data: bytes) -> bytes:
    """Return a chunk of a body; nothing for no data, as an empty chunk would end the body."""
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""
