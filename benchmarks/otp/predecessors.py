"""Predecessors: pykka (an actor is a thread) and triotp (OTP on trio).

Neither is a dependency, so both are loaded by name; triotp runs under an interpreter of its own.
"""

import importlib
from functools import partial
from types import ModuleType
from typing import Any, Final

import trio
import trio.testing

from benchmarks.effort import Effort, Figures

SERVER: Final = "server"


def pykka_ask(effort: Effort) -> Figures:
    """Ask a pykka actor and wait for its answer."""
    pykka: Any = importlib.import_module("pykka")

    def on_receive(self: Any, message: str) -> int:
        self.count += 1
        return int(self.count)

    server: Any = type("Server", (pykka.ThreadingActor,), {"count": 0, "on_receive": on_receive})
    ref: Any = server.start()

    async def ask(times: int) -> None:
        for _ in range(times):
            ref.ask("get")

    try:
        return {"ask": trio.run(effort.time, ask, 3_000)}
    finally:
        ref.stop()


def triotp_call(effort: Effort) -> Figures:
    """Call a triotp generic server."""
    return trio.run(_with_triotp, effort, "call")


def triotp_cast(effort: Effort) -> Figures:
    """Cast to a triotp generic server; its mailbox has no room, so each cast waits for it."""
    return trio.run(_with_triotp, effort, "cast")


async def _with_triotp(effort: Effort, key: str) -> Figures:
    gen_server: Any = importlib.import_module("triotp.gen_server")
    mailbox: Any = importlib.import_module("triotp.mailbox")
    mailbox._init()  # its node does this first
    say: Any = getattr(gen_server, key)

    async def many(times: int) -> None:
        for _ in range(times):
            await say(SERVER, "add")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(gen_server.start, _server(gen_server), name=SERVER))
        await trio.testing.wait_all_tasks_blocked()
        figures = {key: await effort.time(many, 3_000)}
        nursery.cancel_scope.cancel()
    return figures


def _server(gen_server: Any) -> ModuleType:
    """Create the module of callbacks that a triotp server needs."""
    module = ModuleType("server")
    server: Any = module

    async def init(_: object) -> int:
        return 0

    async def handle_call(_message: str, _caller: object, count: int) -> tuple[object, int]:
        return gen_server.Reply(payload=count), count + 1

    async def handle_cast(_message: str, count: int) -> tuple[object, int]:
        return gen_server.NoReply(), count + 1

    server.init, server.handle_call, server.handle_cast = init, handle_call, handle_cast
    return module
