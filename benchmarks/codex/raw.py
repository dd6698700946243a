"""Codex's app-server driven in the simplest way: a child, a line per message, and json."""

import json
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from statistics import median
from typing import Any, Final

import trio

from benchmarks.agent_setup import HI, LAPS, PIECES, SLOW_TEXT, AgentSetup, long_text
from benchmarks.codex.environment import set_scene
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

    async def say(self, message: object) -> None:
        assert self._process.stdin is not None
        await self._process.stdin.send_all(json.dumps(message).encode() + b"\n")

    async def ask(self, method: str, **params: object) -> dict[str, Any]:
        self._asked += 1
        await self.say({"id": self._asked, "method": method, "params": params})
        while True:
            said = await anext(self._lines)
            if said.get("id") == self._asked:
                result: dict[str, Any] = said["result"]
                return result

    async def thread(self, scene: AgentSetup) -> str:
        """Start a thread."""
        started = await self.ask(
            "thread/start", cwd=str(scene.work), approvalPolicy="never", sandbox="read-only"
        )
        return str(started["thread"]["id"])

    async def begin(self, thread: str, prompt: str) -> str:
        """Start a turn."""
        given = [{"type": "text", "text": prompt}]
        return str((await self.ask("turn/start", threadId=thread, input=given))["turn"]["id"])

    async def until(self, method: str) -> None:
        """Read until this message."""
        while (await anext(self._lines)).get("method") != method:
            pass

    async def turn(self, thread: str, prompt: str = HI) -> None:
        await self.begin(thread, prompt)
        await self.until("turn/completed")

    async def _read(self) -> AsyncIterator[dict[str, Any]]:  # noqa: ASYNC900  # closed by its server
        assert self._process.stdout is not None
        held = b""
        async for chunk in self._process.stdout:
            *lines, held = (held + chunk).split(b"\n")
            for line in lines:
                yield json.loads(line)


@asynccontextmanager
async def server(scene: AgentSetup) -> AsyncGenerator[RawAppServer, None]:
    """Start a process, and end it with the block."""
    process = await trio.lowlevel.open_process(
        [scene.program, "app-server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=scene.work,
        env=scene.env,
    )
    started = RawAppServer(process)
    try:
        async with aclosing(started._lines):  # type: ignore[type-var]
            await started.ask("initialize", **CLIENT)
            await started.say({"method": "initialized"})
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
    with set_scene() as scene:
        for _ in range(effort.repeats(LAPS)):
            async with AsyncExitStack() as stack:
                with first.lap():
                    it = await stack.enter_async_context(server(scene))
                    await it.begin(await it.thread(scene), HI)
                    await it.until("turn/started")
                await it.until("turn/completed")
        async with server(scene) as it:
            thread = await it.thread(scene)
            await it.turn(thread)
            for _ in range(effort.population(100)):
                with warm.lap():
                    await it.turn(thread)
            for _ in range(effort.repeats(LAPS)):
                turn = await it.begin(thread, SLOW_TEXT)
                await it.until("item/agentMessage/delta")
                with interrupted.lap():
                    await it.say(
                        {
                            "id": "interrupt",
                            "method": "turn/interrupt",
                            "params": {"threadId": thread, "turnId": turn},
                        }
                    )
                    await it.until("turn/completed")
    return {"first": first.middle, "turn": warm.middle, "interrupt": interrupted.middle}


def stream(effort: Effort) -> Figures:
    """Read a long text; CPU of our process, in µs per piece."""

    async def main() -> Figures:
        pieces = effort.operations(PIECES)
        costs: list[float] = []
        with set_scene() as scene:
            async with server(scene) as it:
                thread = await it.thread(scene)
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
        with set_scene() as scene:
            async with server(scene):
                pass  # the first process writes the files of its home
            laps = Laps()
            async with AsyncExitStack() as stack:
                with laps.lap():
                    servers = [await stack.enter_async_context(server(scene)) for _ in range(count)]
                    async with trio.open_nursery() as nursery:
                        for each in servers:
                            nursery.start_soon(_one_turn, each, scene)
                mib = sum(private_mib(each.pid) for each in servers) / count
        return {"mib": mib, "start": laps.middle / count}

    return trio.run(main)


async def _one_turn(it: RawAppServer, scene: AgentSetup) -> None:
    await it.turn(await it.thread(scene))
