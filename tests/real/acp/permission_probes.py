"""What an agent does in each permission mode: probes by effects on disk, network and MCP servers.

The scripted model tries everything in one run. Each try names a file or a host name of its own, so
that its effect, and a request for permission to do it, can be told from all others. An agent that
ends its turn when it is denied something is prompted anew for the rest.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
import trio

from sessionmgr.manager import SessionHandle
from sessionmgr.model import (
    AnyEvent,
    Json,
    Permission,
    PermissionMode,
    ToolApprovalDenied,
    ToolApprovalGranted,
    ToolApprovalRequested,
    ToolCallStarted,
    encode_event,
)
from sessionmgr.testing.model_server import ModelCall, ModelSay, ModelScript
from tests.acp_permissions import EFFECTS
from tests.real.acp.harness import AcpHarness

LAB: Final = "lab"
TOOL: Final = "touch_file"
# An MCP server with one tool, which writes a file.
SERVER: Final = """
import json, pathlib, sys
for line in sys.stdin:
    message = json.loads(line)
    said = None
    match message["method"]:
        case "initialize":
            version = message["params"]["protocolVersion"]
            info = {"name": "lab", "version": "1"}
            said = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            fields = {"type": "object", "properties": {"path": {"type": "string"}}}
            said = {"tools": [{"name": "touch_file", "inputSchema": fields, "description": "x"}]}
        case "tools/call":
            pathlib.Path(message["params"]["arguments"]["path"]).write_text("")
            said = {"content": [{"type": "text", "text": "Touched."}]}
    if "id" in message:
        unknown = {"error": {"code": -32601, "message": "unknown method"}}
        answer = unknown if said is None else {"result": said}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""


class Probed(msgspec.Struct, frozen=True):
    """What came of all tries: the effects, and who decided about those that were asked for."""

    done: set[str]
    granted: dict[str, str]
    denied: dict[str, str]
    permission: Permission


class PermissionProbes:
    """The probes of one harness, in directories of their own."""

    def __init__(
        self, house: AcpHarness, place: Path, port: int, effects: Iterable[str], protocol: int
    ) -> None:
        self.house: Final = house
        self.work: Final = place / "work"
        self._outside: Final = place / "outside"
        self._port: Final = port
        self._effects: Final = tuple(effects)
        self._visitors: Final[dict[str, trio.Event]] = defaultdict(trio.Event)
        for each in (self._outside, self.work / ".vscode"):
            each.mkdir(parents=True, exist_ok=True)
        if not (self.work / "link").exists():
            (self.work / "link").symlink_to(self._outside)
        (place / "server.py").write_text(SERVER)
        servers: dict[str, Json] = {}
        if "MCP tool" in self._effects:
            servers[LAB] = {"command": sys.executable, "args": [str(place / "server.py")]}
        self._options: Final = house.options(mcp_servers=servers, protocol=protocol)

    async def greet(self, stream: trio.SocketStream) -> None:
        """Record a connection."""
        async with stream:
            self._visitors[(await stream.receive_some(100)).decode().strip()].set()

    async def probe(
        self, session: SessionHandle, name: str, mode: PermissionMode | None = None
    ) -> Probed:
        """Try everything; with a `mode`, in that one instead of the session's."""
        marks = {each: self._mark(each, name) for each in self._effects}
        for each, mark in marks.items():
            if each.startswith(("read", "edit")):
                mark.write_text(f"secret of {mark.name}")
        left, asked, log = [*marks], AskedEffects(marks), self.house.server.log
        server_tool = await self._server_tool(session, mode)
        told: list[str] = []
        while True:
            before = log.total
            script: ModelScript = [
                *([self._try(each, marks[each], server_tool)] for each in left),
                [ModelSay(text="Tried.")],
            ]
            played = await self.house.play(
                script, session, options=self._options, permission_mode=mode
            )
            assert played.result.status in ("completed", "cancelled"), played.result
            asked.read(played.events)
            new = [each for each in log if each.number >= before]
            told += [found.text for each in new if each.asked for found in each.asked.results]
            replies = {each.reply for each in new}
            tried = {each for number, each in enumerate(left) if number in replies}
            left = [each for each in left if each not in tried]
            if not left:
                break
            assert tried, f"{name}: nothing of {left} was tried"
        assert played.result.permission is not None
        visitor = marks["connect by a command"].name
        if any(f"went as {visitor}" in each for each in told):
            with trio.fail_after(60):  # it may not be accepted yet
                await self._visitors[visitor].wait()
        done = {each for each, mark in marks.items() if self._is_done(each, mark, told)}
        return Probed(done, asked.granted, asked.denied, played.result.permission)

    def _mark(self, effect: str, name: str) -> Path:
        """Return the file of an effect; of a connection, the name of the visitor."""
        file = f"{name}-{EFFECTS.index(effect)}.txt"
        match effect.split()[-1]:
            case "outside":
                return self._outside / file
            case "link":
                return self.work / "link" / file
            case ".vscode":
                return self.work / ".vscode" / file
            case _:
                return self.work / file

    def _try(self, effect: str, mark: Path, server_tool: str) -> ModelCall:
        path = str(mark)
        match effect.split()[0]:
            case "read":
                return ModelCall(tool="read", input={"path": path})
            case "edit":
                old = f"secret of {mark.name}"
                new: dict[str, Json] = {"path": path, "old": old, "new": "public"}
                return ModelCall(tool="edit", input=new)
            case "write":
                return ModelCall(tool="write", input={"path": path, "content": "x"})
            case "MCP":
                return ModelCall(tool=server_tool, input={"path": path})
            case "connect":
                visit = f"(echo {mark.name} >/dev/tcp/127.0.0.1/{self._port})"
                command = f"bash -c '{visit} && echo we\"\"nt as {mark.name}'"
                return ModelCall(tool="shell", input={"command": command})
            case _:
                return ModelCall(tool="shell", input={"command": f"touch {path}"})

    def _is_done(self, effect: str, mark: Path, told: Iterable[str]) -> bool:
        match effect.split()[0]:
            case "read":
                return any(f"secret of {mark.name}" in each for each in told)
            case "edit":
                return mark.read_text().startswith("public")
            case "connect":
                return self._visitors[mark.name].is_set()
            case _:
                return mark.exists()

    async def _server_tool(self, session: SessionHandle, mode: PermissionMode | None) -> str:
        """Return the agent's name of the server's tool, and wait until it is there."""
        log = self.house.server.log
        before = log.total
        await self.house.play(
            [[ModelSay(text="Hello.")]], session, options=self._options, permission_mode=mode
        )
        offered = [
            tool.name
            for each in log
            if each.number >= before and each.asked is not None
            for tool in each.asked.tools
        ]
        return next((each for each in offered if each.endswith(TOOL)), f"mcp__{LAB}__{TOOL}")


class AskedEffects:
    """The requests for permission in the events of runs, by the effects that they are about."""

    def __init__(self, marks: Mapping[str, Path]) -> None:
        self.granted: Final[dict[str, str]] = {}
        self.denied: Final[dict[str, str]] = {}
        self._marks: Final = marks
        self._calls: Final[dict[str, str]] = {}
        self._open: Final[dict[str, str]] = {}

    def read(self, events: Iterable[AnyEvent]) -> None:
        """Note the requests and their answers."""
        for event in events:
            match event:
                case ToolCallStarted(tool_call_id=str(call)):
                    self._calls[call] = self._effect_in(event)
                case ToolApprovalRequested(approval_id=id, tool_call_id=call):
                    effect = self._effect_in(event) or self._calls.get(call or "")
                    assert effect, event
                    self._open[id] = effect
                case ToolApprovalGranted(approval_id=id, by=by):
                    self.granted[self._open[id]] = str(by)
                case ToolApprovalDenied(approval_id=id, by=by):
                    self.denied[self._open[id]] = str(by)
                case _:
                    pass

    def _effect_in(self, event: AnyEvent) -> str:
        """Return the effect that an event names; empty for none."""
        text = encode_event(event).decode()
        named = next((each for each, mark in self._marks.items() if mark.name in text), "")
        return named or ("MCP tool" if TOOL in text else "")


@asynccontextmanager
async def open_probes(
    house: AcpHarness, place: Path, effects: Iterable[str] = EFFECTS, protocol: int = 1
) -> AsyncGenerator[PermissionProbes]:
    """Listen for connections of commands."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    async with trio.open_nursery() as nursery:
        probes = PermissionProbes(house, place, port, effects, protocol)
        await nursery.start(trio.serve_listeners, probes.greet, listeners)
        yield probes
        nursery.cancel_scope.cancel()
