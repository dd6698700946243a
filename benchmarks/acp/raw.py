"""An agent over ACP driven in the simplest way: a child, a line per message, and json."""

import json
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from statistics import median
from typing import Any

import trio

from benchmarks.acp.environment import AcpSetup, acp_setup, warm_turns
from benchmarks.agent_setup import PIECES
from benchmarks.effort import Effort, Figures, Stopwatch, cpu
from benchmarks.process.stopwatch import Laps


class RawAcp:
    """An agent's process, and its session."""

    def __init__(self, process: trio.Process) -> None:
        self._process = process
        self.lines = self._read()
        self._last = 0
        self.session = ""

    async def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request, and read until its answer."""
        self._last += 1
        message = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        assert self._process.stdin is not None
        await self._process.stdin.send_all(json.dumps(message).encode() + b"\n")
        async for frame in self.lines:
            if frame.get("id") == self._last and "method" not in frame:
                result: dict[str, Any] = frame["result"]
                return result
        raise EOFError(method)

    async def turn(self, prompt: str) -> None:
        blocks = [{"type": "text", "text": prompt}]
        ended = await self.request("session/prompt", {"sessionId": self.session, "prompt": blocks})
        assert ended["stopReason"] == "end_turn"

    async def _read(self) -> AsyncIterator[dict[str, Any]]:  # noqa: ASYNC900  # closed by its child
        assert self._process.stdout is not None
        held = b""
        async for chunk in self._process.stdout:
            *lines, held = (held + chunk).split(b"\n")
            for line in lines:
                yield json.loads(line)


@asynccontextmanager
async def child(setup: AcpSetup) -> AsyncGenerator[RawAcp, None]:
    """Start an agent with a session, and end it with the block."""
    process = await trio.lowlevel.open_process(
        setup.command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=setup.work,
        env=setup.env,
    )
    started = RawAcp(process)
    try:
        async with aclosing(started.lines):  # type: ignore[type-var]
            await started.request("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
            opening: dict[str, Any] = {"cwd": str(setup.work), "mcpServers": []}
            started.session = (await started.request("session/new", opening))["sessionId"]
            yield started
    finally:
        process.kill()
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 10):
            await process.wait()


async def _turns(effort: Effort, *, real: bool) -> Figures:
    warm = Laps()
    with acp_setup(real=real) as setup:
        async with child(setup) as it:
            await it.turn(setup.prompt(1))
            for _ in range(warm_turns(effort, real=real)):
                with warm.lap():
                    await it.turn(setup.prompt(1))
    return {"turn": warm.median}


def turns(effort: Effort) -> Figures:
    """Run prompts in a session of the fast agent; ms."""
    return trio.run(lambda: _turns(effort, real=False))


def real_turns(effort: Effort) -> Figures:
    """Run prompts in a session of the real agent; ms."""
    return trio.run(lambda: _turns(effort, real=True))


def stream(effort: Effort) -> Figures:
    """Read long answers; CPU of our process, in µs per update."""

    async def main() -> Figures:
        pieces, costs = effort.operations(PIECES), list[float]()
        with acp_setup(real=False) as setup:
            async with child(setup) as it:
                await it.turn("1")
                for _ in range(effort.repeats(5)):
                    with (watch := Stopwatch(cpu)):
                        await it.turn(setup.prompt(pieces))
                    costs.append(watch.micros / pieces)
        return {"update": median(costs)}

    return trio.run(main)
