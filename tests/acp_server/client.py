"""A client of the served agent, in memory; all messages are validated by the protocol's schemas."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import trio
from trio.testing import lockstep_stream_pair, memory_stream_pair

from sessionmgr.acp_server import AcpServer, probe_offer
from sessionmgr.adapter import ProviderAdapter
from sessionmgr.manager import Manager, RunRequest, open_manager
from sessionmgr.store import Store
from sessionmgr.testing import scripted
from sessionmgr.testing.scripted_provider import Script, Step, write_script
from tests.acp_server import schema

Message = dict[str, Any]


class RpcFailed(Exception):
    """The agent answered with an error."""

    def __init__(self, error: Message) -> None:
        super().__init__(error)
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Any = error.get("data")


class SchemaClient:
    """A client that keeps everything it receives."""

    def __init__(self, stream: trio.StapledStream[Any, Any]) -> None:
        self._stream: Final = stream
        self.version = 1
        self.seen: Final[list[Message]] = []
        """All messages from the agent, in order."""
        self._news = trio.Event()
        self._may_read = trio.Event()
        self._may_read.set()
        self._last = 0
        self._methods: Final[dict[int, str]] = {}
        self.on_request: Callable[[Message], Awaitable[Message | None]] | None = None
        """Returns the result of an agent's request; None leaves it open."""

    async def send_raw(self, data: bytes) -> None:
        await self._stream.send_all(data)

    async def send(self, message: Message) -> None:
        await self.send_raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def notify(self, method: str, params: Message) -> None:
        schema.check(self.version, method, "Notification", params)
        await self.send({"method": method, "params": params})

    async def begin(self, method: str, params: Message) -> int:
        """Send a request, and return its id."""
        schema.check(self.version, method, "Request", params)
        self._last += 1
        self._methods[self._last] = method
        await self.send({"id": self._last, "method": method, "params": params})
        return self._last

    async def request(self, method: str, params: Message) -> Message:
        return await self.answer(await self.begin(method, params))

    async def answer(self, id_: int | str) -> Message:
        """Wait for the answer to a request."""

        def find() -> Message | None:
            return next((m for m in self.seen if "method" not in m and m["id"] == id_), None)

        found = await self.wait_for(find)
        if "error" in found:
            raise RpcFailed(found["error"])
        result: Message = found["result"]
        return result

    async def wait_for(self, find: Callable[[], Any]) -> Any:
        """Wait until `find` returns something."""
        with trio.fail_after(30):
            await trio.lowlevel.checkpoint()
            while not (found := find()):
                await self._news.wait()
        return found

    async def end(self) -> None:
        """Close the client's side."""
        await self._stream.send_stream.aclose()

    def pause(self) -> None:
        """Read no more after the next piece, until `proceed`."""
        self._may_read = trio.Event()

    def proceed(self) -> None:
        self._may_read.set()

    async def read(self) -> None:
        data = b""
        while piece := await self._stream.receive_some():
            await self._may_read.wait()
            *lines, data = (data + piece).split(b"\n")
            for line in lines:
                message = json.loads(line)
                self._check(message)
                self.seen.append(message)
                news, self._news = self._news, trio.Event()
                news.set()
                if "method" in message and "id" in message and self.on_request is not None:
                    result = await self.on_request(message)
                    if result is not None:
                        await self.send({"id": message["id"], "result": result})
        assert data == b""

    def _check(self, message: Message) -> None:
        assert message.pop("jsonrpc") == "2.0"
        if "method" in message:
            kind = "Request" if "id" in message else "Notification"
            schema.check(self.version, message["method"], kind, message["params"])
        elif "error" in message:
            schema.check_error(self.version, message["error"])
        elif (method := self._methods.get(message["id"])) is not None:
            schema.check(self.version, method, "Response", message["result"])

    # --- what was received -----------------------------------------------------------------------

    def updates(self, kind: str | None = None, session_id: str | None = None) -> list[Message]:
        """Return the updates of a kind and a session."""
        return [
            message["params"]["update"]
            for message in self.seen
            if message.get("method") == "session/update"
            and kind in {None, message["params"]["update"]["sessionUpdate"]}
            and session_id in {None, message["params"]["sessionId"]}
        ]

    def text(self, kind: str = "agent_message_chunk", session_id: str | None = None) -> str:
        return "".join(each["content"]["text"] for each in self.updates(kind, session_id))

    # --- usual requests --------------------------------------------------------------------------

    async def initialize(self, version: int = 1, **capabilities: Any) -> Message:
        self.version = version
        params: Message = {"protocolVersion": version}
        if version == 1:
            params["clientCapabilities"] = capabilities
        else:
            params |= {"info": {"name": "test", "version": "1"}, "capabilities": capabilities}
        return await self.request("initialize", params)

    async def new(self, cwd: object, **more: Any) -> str:
        params: Message = {"cwd": str(cwd), "mcpServers": [], **more}
        session_id: str = (await self.request("session/new", params))["sessionId"]
        return session_id

    def prompt_params(self, session_id: str, *steps: Step | str, **script: Any) -> Message:
        texts = [each for each in steps if isinstance(each, str)]
        moves = tuple(each for each in steps if not isinstance(each, str))
        text = texts[0] if texts else write_script(Script(steps=moves, **script))
        return {"sessionId": session_id, "prompt": [{"type": "text", "text": text}]}

    async def prompt(self, session_id: str, *steps: Step | str, **script: Any) -> Message:
        params = self.prompt_params(session_id, *steps, **script)
        return await self.request("session/prompt", params)

    async def begin_prompt(self, session_id: str, *steps: Step | str, **script: Any) -> int:
        params = self.prompt_params(session_id, *steps, **script)
        return await self.begin("session/prompt", params)


@asynccontextmanager
async def serving(
    provider: type[ProviderAdapter] | None = None,
    *,
    store: Store | str | None = None,
    models: tuple[str, ...] = (),
    manager: Manager | None = None,
    in_lockstep: bool = False,
    **request: Any,
) -> AsyncGenerator[SchemaClient, None]:
    """Serve a scripted provider in memory, and return its client; at the end the client leaves.

    In lockstep, neither side can send more than the other one receives.
    """
    provider = provider or scripted("actor")
    if manager is None:
        async with (
            open_manager(store=store, adapters={provider.name: provider}) as opened,
            serving(
                provider, models=models, manager=opened, in_lockstep=in_lockstep, **request
            ) as client,
        ):
            yield client
        return
    ours, theirs = lockstep_stream_pair() if in_lockstep else memory_stream_pair()
    wish = RunRequest(prompt="", **request)
    offer = probe_offer(manager, provider.name, wish, models=models, cwd="/")
    server = AcpServer(manager, offer, theirs, theirs)
    client = SchemaClient(ours)
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.read)

            async def serve() -> None:
                await server.run()
                await theirs.aclose()

            nursery.start_soon(serve)
            yield client
            await client.end()
