"""A client without a model of the protocol, which exchanges JSON with an agent's process."""

import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

from sessionmgr.testing.model_server import IsolatedEnvironment
from tests.real.acp.agents import InstalledAcpAgent
from tests.real.acp.contract import Side
from tests.real.agent_process import AgentProgram, Line, LineConversation
from tests.real.harness import MARK, line_of, until, with_word

CLIENT = {"name": "sessionmgr-tests", "version": "1"}


class RawAcpClient:
    """It allows what the agent asks for, once, and has no other service for it."""

    def __init__(self, lines: LineConversation) -> None:
        self._lines = lines
        self._ids = count()
        self.traffic: list[tuple[Side, Line]] = []

    async def request(self, method: str, **params: Any) -> Line:
        """Send a request, and return its result."""
        id = next(self._ids)
        await self._say(id=id, method=method, params=params)
        answer = await self.until(lambda line: line.get("id") == id and "method" not in line)
        assert "error" not in answer, answer
        result: Line = answer["result"]
        return result

    async def initialize(self, version: int = 1) -> Line:
        """Begin the connection, and return the agent's answer."""
        if version == 2:
            return await self.request("initialize", protocolVersion=2, info=CLIENT, capabilities={})
        return await self.request(
            "initialize",
            protocolVersion=1,
            clientInfo=CLIENT,
            clientCapabilities={
                "fs": {"readTextFile": False, "writeTextFile": False},
                "terminal": False,
            },
        )

    async def prompt(self, session: str, text: str) -> Line:
        """Send a prompt, and return the answer to it."""
        blocks = [{"type": "text", "text": text}]
        return await self.request("session/prompt", sessionId=session, prompt=blocks)

    async def until(self, wanted: Callable[[Line], bool]) -> Line:
        """Return the next wanted message of the agent; permissions are granted meanwhile."""

        def is_stop(line: Line) -> bool:
            self.traffic.append(("agent", line))
            return wanted(line) or line.get("method") == "session/request_permission"

        while True:
            line = await self._lines.until(is_stop)
            if wanted(line):
                return line
            options = line["params"]["options"]
            [chosen, *_] = [each["optionId"] for each in options if each["kind"] == "allow_once"]
            outcome = {"outcome": "selected", "optionId": chosen}
            await self._say(id=line["id"], result={"outcome": outcome})

    async def close(self) -> int:
        """End the agent's input, and return its exit code."""
        return await self._lines.close()

    def updates(self, kind: str) -> list[Line]:
        """Return the session updates of a kind so far."""
        updates = [
            message["params"]["update"]
            for _, message in self.traffic
            if message.get("method") == "session/update"
        ]
        return [update for update in updates if update["sessionUpdate"] == kind]

    @property
    def text(self) -> str:
        """The text of all messages so far."""
        return "".join(each["content"]["text"] for each in self.updates("agent_message_chunk"))

    async def _say(self, **fields: Any) -> None:
        message: Line = {"jsonrpc": "2.0", **fields}
        await self._lines.say(message)
        self.traffic.append(("client", message))


@asynccontextmanager
async def open_raw_client(
    agent: InstalledAcpAgent, isolated: IsolatedEnvironment
) -> AsyncGenerator[RawAcpClient]:
    """Start an agent, which must end with its input and leave no process."""
    mark = uuid.uuid4().hex
    environment = {**agent.environment(isolated), MARK: mark}
    program = AgentProgram(agent.id, agent.version, agent.program, environment, isolated.work, None)
    async with program.open(*agent.command[1:]) as lines:
        client = RawAcpClient(lines)
        yield client
        # A launcher that stays would be the parent of the agent.
        assert not any(line_of(pid).startswith(b"/bin/sh") for pid in with_word(mark))
        assert await client.close() == 0
        await until(lambda: with_word(mark) == [], 10)
