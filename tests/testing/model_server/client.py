"""A minimal client of models: it sends bytes, and reads answers."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import trio

from sessionmgr.model import Json
from sessionmgr.testing.model_server import ModelServer
from sessionmgr.wire import ServerEvent, ServerEventDecoder


class HttpAnswer(msgspec.Struct):
    """An answer."""

    status: int
    headers: dict[str, str]
    body: bytes
    whole: bool

    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    def events(self) -> list[dict[str, Any]]:
        decoder = ServerEventDecoder()
        found = [each for each in decoder.feed(self.body) if isinstance(each, ServerEvent)]
        return [msgspec.json.decode(each.data) for each in found]

    def types(self) -> list[str]:
        return [str(each["type"]) for each in self.events()]


class HttpClient:
    """One connection, request after request."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.held = bytearray()

    async def send(
        self, method: str, target: str, body: Json = None, headers: Mapping[str, str] | None = None
    ) -> None:
        data = b"" if body is None else msgspec.json.encode(body)
        lines = [f"{method} {target} HTTP/1.1", "host: here", f"content-length: {len(data)}"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        await self.stream.send_all("\r\n".join(lines).encode() + b"\r\n\r\n" + data)

    async def ask(
        self, method: str, target: str, body: Json = None, headers: Mapping[str, str] | None = None
    ) -> HttpAnswer:
        await self.send(method, target, body, headers)
        return await self.receive(has_body=method != "HEAD")

    async def receive(self, *, has_body: bool = True) -> HttpAnswer:
        """Read one answer, or its part that has arrived."""
        while b"\r\n\r\n" not in self.held:
            if not await self._more():
                return HttpAnswer(0, {}, bytes(self.held), whole=False)
        head, _, rest = bytes(self.held).partition(b"\r\n\r\n")
        self.held = bytearray(rest)
        first, *lines = head.decode().split("\r\n")
        headers = {
            name.lower(): value for name, _, value in (each.partition(": ") for each in lines)
        }
        answer = HttpAnswer(int(first.split()[1]), headers, b"", whole=True)
        if not has_body:
            return answer
        if "content-length" in headers:
            length = int(headers["content-length"])
            while len(self.held) < length and await self._more():
                pass
            answer.body, answer.whole = bytes(self.held[:length]), len(self.held) >= length
            del self.held[:length]
            return answer
        while True:
            chunk = await self._chunk()
            if chunk is None:
                answer.whole = False
                return answer
            if not chunk:
                return answer
            answer.body += chunk

    async def heard(self, text: bytes) -> None:
        """Wait until some text has arrived."""
        while text not in self.held:
            assert await self._more()

    async def _chunk(self) -> bytes | None:
        while b"\r\n" not in self.held:
            if not await self._more():
                return None
        size = int(self.held.partition(b"\r\n")[0], 16)
        start = self.held.index(b"\r\n") + 2
        while len(self.held) < start + size + 2:
            if not await self._more():
                return None
        chunk = bytes(self.held[start : start + size])
        del self.held[: start + size + 2]
        return chunk

    async def _more(self) -> bool:
        data = await self.stream.receive_some(64 << 10)
        self.held += data
        return bool(data)


@asynccontextmanager
async def connect_client(server: ModelServer) -> AsyncGenerator[HttpClient]:
    """Connect to a server."""
    async with await trio.open_tcp_stream("127.0.0.1", server.port) as stream:
        yield HttpClient(stream)


TOOLS: Json = [
    {
        "name": "Bash",
        "input_schema": {
            "type": "object",
            "properties": {"command": {"type": "string"}, "limit": {"type": "integer"}},
            "required": ["command", "limit"],
        },
    }
]


def message(role: str, *content: Json) -> Json:
    """Return a message; texts become blocks."""
    blocks: list[Json] = [
        {"type": "text", "text": each} if isinstance(each, str) else each for each in content
    ]
    return {"role": role, "content": blocks}


def messages(*said: Json, stream: bool = True, **more: Json) -> Json:
    """Return the body of a request to Anthropic; a text becomes a message of the user."""
    found = [message("user", each) if isinstance(each, str) else each for each in said]
    return {"model": "a-model", "stream": stream, "messages": found, "tools": TOOLS, **more}


def response(*said: Json, stream: bool = True, **more: Json) -> Json:
    """Return the body of a request to OpenAI; a text becomes a message of the user."""
    found: list[Json] = [
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": each}],
        }
        if isinstance(each, str)
        else each
        for each in said
    ]
    return {"model": "a-model", "stream": stream, "input": found, **more}


def completion(*said: Json, stream: bool = True, **more: Json) -> Json:
    """Return the body of a Chat Completions request; a text becomes a message of the user."""
    found: list[Json] = [
        {"role": "user", "content": each} if isinstance(each, str) else each for each in said
    ]
    return {"model": "a-model", "stream": stream, "messages": found, **more}


def content(*said: Json, **more: Json) -> Json:
    """Return the body of a Gemini request; a text becomes a content of the user."""
    found: list[Json] = [
        {"role": "user", "parts": [{"text": each}]} if isinstance(each, str) else each
        for each in said
    ]
    return {"contents": found, **more}
