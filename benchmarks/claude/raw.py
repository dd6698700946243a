"""Claude Code driven in the simplest way: a child, a line per message, and json."""

import json
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from statistics import median
from typing import Any, Final

import trio

from benchmarks.agent_setup import HI, LAPS, PIECES, SLOW_TEXT, AgentSetup, long_text
from benchmarks.claude.environment import claude_setup
from benchmarks.effort import Effort, Figures, Stopwatch, cpu
from benchmarks.process.stopwatch import Laps

FLAGS: Final = (
    *("--print", "--output-format=stream-json", "--verbose", "--include-partial-messages"),
    "--permission-mode=default",
)
IN_FRAMES: Final = ("--input-format=stream-json", "--replay-user-messages")
INITIALIZE: Final = {
    "type": "control_request",
    "request_id": "1",
    "request": {"subtype": "initialize"},
}
INTERRUPT: Final = {
    "type": "control_request",
    "request_id": "2",
    "request": {"subtype": "interrupt"},
}


class RawClaude:
    """A Claude Code process and its lines."""

    def __init__(self, process: trio.Process) -> None:
        self._process = process
        self._lines = self._read()

    async def write(self, message: object) -> None:
        assert self._process.stdin is not None
        await self._process.stdin.send_all(json.dumps(message).encode() + b"\n")

    async def ask(self, prompt: str) -> None:
        await self.write({"type": "user", "message": {"role": "user", "content": prompt}})

    async def read_frame(self) -> dict[str, Any]:
        return await anext(self._lines)

    async def read_until(self, kind: str, **fields: str) -> int:
        """Read until this message; return how many messages were read."""
        count = 0
        while True:
            count += 1
            frame = await self.read_frame()
            if frame["type"] == kind and fields.items() <= frame.items():
                return count

    async def turn(self, prompt: str) -> int:
        await self.ask(prompt)
        return await self.read_until("result") + await self.idle()

    async def idle(self) -> int:
        return await self.read_until("system", subtype="session_state_changed", state="idle")

    async def text(self) -> None:
        """Read until a text streams: before that, an interrupt stores no partial text."""
        while (await self.read_frame()).get("event", {}).get("type") != "content_block_delta":
            pass

    async def _read(self) -> AsyncIterator[dict[str, Any]]:  # noqa: ASYNC900  # closed by its child
        assert self._process.stdout is not None
        held = b""
        async for chunk in self._process.stdout:
            *lines, held = (held + chunk).split(b"\n")
            for line in lines:
                yield json.loads(line)


@asynccontextmanager
async def child(
    setup: AgentSetup, *arguments: str, is_talked_to: bool = True
) -> AsyncGenerator[RawClaude, None]:
    """Start a process, and end it with the block."""
    process = await trio.lowlevel.open_process(
        [setup.program, *FLAGS, *arguments],
        stdin=subprocess.PIPE if is_talked_to else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        cwd=setup.work,
        env=setup.env,
    )
    started = RawClaude(process)
    try:
        async with aclosing(started._lines):  # type: ignore[type-var]
            yield started
        if process.stdin is not None:
            await process.stdin.aclose()
        await process.wait()
    finally:
        process.kill()


def turns(effort: Effort) -> Figures:
    """Run prompts in a running child; ms."""
    return trio.run(_turns, effort)


async def _turns(effort: Effort) -> Figures:
    first, warm, interrupted = Laps(), Laps(), Laps()
    with claude_setup() as setup:
        for _ in range(effort.repeats(LAPS)):
            with first.lap():
                one = child(setup, *IN_FRAMES)
                it = await one.__aenter__()
                await it.write(INITIALIZE)
                await it.read_until("control_response")
                await it.ask(HI)
                await it.read_until("system", subtype="init")
            await it.idle()
            await one.__aexit__(None, None, None)
        async with child(setup, *IN_FRAMES) as it:
            await it.write(INITIALIZE)
            await it.turn(HI)
            for _ in range(effort.population(200)):
                with warm.lap():
                    await it.turn(HI)
            for _ in range(effort.repeats(LAPS)):
                await it.ask(SLOW_TEXT)
                await it.text()
                with interrupted.lap():
                    await it.write(INTERRUPT)
                    await it.read_until("result")
                    await it.idle()
    return {"first": first.median, "turn": warm.median, "interrupt": interrupted.median}


def one_shots(effort: Effort) -> Figures:
    """Run each prompt in a child of its own, from its start to its end; ms."""

    async def main() -> Figures:
        laps = Laps()
        with claude_setup() as setup:
            for _ in range(effort.repeats(8)):
                with laps.lap():
                    async with child(setup, HI, is_talked_to=False) as it:
                        await it.read_until("result")
            return {"run": laps.median}

    return trio.run(main)


def stream(effort: Effort) -> Figures:
    """Read a long text; CPU of our process, in µs per piece."""

    async def main() -> Figures:
        pieces = effort.operations(PIECES)
        costs: list[float] = []
        with claude_setup() as setup:
            async with child(setup, *IN_FRAMES) as it:
                await it.turn(HI)
                for _ in range(effort.repeats(3)):
                    watch = Stopwatch(cpu)
                    with watch:
                        await it.turn(long_text(pieces))
                    costs.append(watch.micros / pieces)
        return {"piece": median(costs)}

    return trio.run(main)
