"""Codex's app-server driven in the simplest way: a child, a line per message, and json."""

import json
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from statistics import median
from typing import Any, Final

import trio

from benchmarks.agent_setup import HI, LAPS, PIECES, SLOW_TEXT, AgentSetup, long_text
from benchmarks.codex.environment import codex_setup
from benchmarks.codex.process_memory import AT_ONCE, private_mib
from benchmarks.effort import Effort, Figures, Stopwatch, cpu
from benchmarks.process.stopwatch import Laps

CLIENT: Final = {"clientInfo": {"name": "benchmark", "version": "1"}}


class RawAppServer:
    """An app-server process and its lines."""

    def __init__(self, process: trio.Process) -> None:
        self.pid: Final = process.pid
        self._process = process
        self._lines = self._read()
        self._asked = 0

    async def write(self, message: object) -> None:
        assert self._process.stdin is not None
        await self._process.stdin.send_all(json.dumps(message).encode() + b"\n")

    async def ask(self, method: str, **params: object) -> dict[str, Any]:
        self._asked += 1
        await self.write({"id": self._asked, "method": method, "params": params})
        while True:
            frame = await anext(self._lines)
            if frame.get("id") == self._asked:
                result: dict[str, Any] = frame["result"]
                return result

    async def thread(self, setup: AgentSetup) -> str:
        """Start a thread."""
        started = await self.ask(
            "thread/start", cwd=str(setup.work), approvalPolicy="never", sandbox="read-only"
        )
        return str(started["thread"]["id"])

    async def begin(self, thread: str, prompt: str) -> str:
        """Start a turn."""
        given = [{"type": "text", "text": prompt}]
        return str((await self.ask("turn/start", threadId=thread, input=given))["turn"]["id"])

    async def read_until(self, method: str) -> None:
        """Read until this message."""
        while (await anext(self._lines)).get("method") != method:
            pass

    async def turn(self, thread: str, prompt: str = HI) -> None:
        await self.begin(thread, prompt)
        await self.read_until("turn/completed")

    async def _read(self) -> AsyncIterator[dict[str, Any]]:  # noqa: ASYNC900  # closed by its server
        assert self._process.stdout is not None
        held = b""
        async for chunk in self._process.stdout:
            *lines, held = (held + chunk).split(b"\n")
            for line in lines:
                yield json.loads(line)


@asynccontextmanager
async def server(setup: AgentSetup) -> AsyncGenerator[RawAppServer, None]:
    """Start a process, and end it with the block."""
    process = await trio.lowlevel.open_process(
        [setup.program, "app-server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=setup.work,
        env=setup.env,
    )
    started = RawAppServer(process)
    try:
        async with aclosing(started._lines):  # type: ignore[type-var]
            await started.ask("initialize", **CLIENT)
            await started.write({"method": "initialized"})
            yield started
        assert process.stdin is not None
        await process.stdin.aclose()
        await process.wait()
    finally:
        process.kill()


def turns(effort: Effort) -> Figures:
    """Run prompts, from the start of a server and in an existing thread; ms."""
    return trio.run(_turns, effort)


async def _turns(effort: Effort) -> Figures:
    first, warm, interrupted = Laps(), Laps(), Laps()
    with codex_setup() as setup:
        for _ in range(effort.repeats(LAPS)):
            async with AsyncExitStack() as stack:
                with first.lap():
                    it = await stack.enter_async_context(server(setup))
                    await it.begin(await it.thread(setup), HI)
                    await it.read_until("turn/started")
                await it.read_until("turn/completed")
        async with server(setup) as it:
            thread = await it.thread(setup)
            await it.turn(thread)
            for _ in range(effort.population(100)):
                with warm.lap():
                    await it.turn(thread)
            for _ in range(effort.repeats(LAPS)):
                turn = await it.begin(thread, SLOW_TEXT)
                await it.read_until("item/agentMessage/delta")
                with interrupted.lap():
                    await it.write(
                        {
                            "id": "interrupt",
                            "method": "turn/interrupt",
                            "params": {"threadId": thread, "turnId": turn},
                        }
                    )
                    await it.read_until("turn/completed")
    return {"first": first.median, "turn": warm.median, "interrupt": interrupted.median}


def stream(effort: Effort) -> Figures:
    """Read a long text; CPU of our process, in µs per piece."""

    async def main() -> Figures:
        pieces = effort.operations(PIECES)
        costs: list[float] = []
        with codex_setup() as setup:
            async with server(setup) as it:
                thread = await it.thread(setup)
                await it.turn(thread)
                for _ in range(effort.repeats(3)):
                    watch = Stopwatch(cpu)
                    with watch:
                        await it.turn(thread, long_text(pieces))
                    costs.append(watch.micros / pieces)
        return {"piece": median(costs)}

    return trio.run(main)


def many(effort: Effort) -> Figures:
    """Run a turn on each of many servers at once: memory of a server, and ms for all."""

    async def main() -> Figures:
        count = effort.repeats(AT_ONCE)
        with codex_setup() as setup:
            async with server(setup):
                pass  # the first process writes the files of its home
            laps = Laps()
            async with AsyncExitStack() as stack:
                with laps.lap():
                    servers = [await stack.enter_async_context(server(setup)) for _ in range(count)]
                    async with trio.open_nursery() as nursery:
                        for each in servers:
                            nursery.start_soon(_one_turn, each, setup)
                mib = sum(private_mib(each.pid) for each in servers) / count
        return {"mib": mib, "start": laps.median / count}

    return trio.run(main)


async def _one_turn(it: RawAppServer, setup: AgentSetup) -> None:
    await it.turn(await it.thread(setup))
