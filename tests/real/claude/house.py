"""A manager with a real Claude Code in it, which knows a scripted model and nobody else."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

import msgspec
import trio

from sessionmgr.manager import Clocks, Manager, SessionHandle, open_manager
from sessionmgr.manager.plan import Wishes
from sessionmgr.model import AnyEvent, Json, RunResult
from sessionmgr.testing.model_server import ModelServer, Script, prompt_with
from sessionmgr_adapters.claude import ClaudeAdapter
from sessionmgr_adapters.claude.launch import ClaudeSpec
from sessionmgr_adapters.claude.sdk import ClaudeConnection, connect

PATIENCE = 90.0
CLOSE = 5.0


@dataclass(frozen=True)
class Played:
    """A run that is over."""

    result: RunResult
    events: list[AnyEvent]

    @property
    def types(self) -> list[str]:
        return [each.type for each in self.events]


@dataclass
class House:
    """Where real runs are played."""

    manager: Manager
    server: ModelServer
    program: Path
    work: Path
    env: dict[str, str]

    async def session(self, mode: str = "default") -> SessionHandle:
        return await self.manager.open_session("claude", cwd=self.work, permission_mode=mode)

    def options(self, **more: Json) -> dict[str, Json]:
        return {"command": [str(self.program)], **more}

    async def play(
        self,
        script: Script,
        session: SessionHandle | None = None,
        *,
        text: str = "",
        **wishes: Unpack[Wishes],
    ) -> Played:
        """Play a script to its end."""
        session = session or await self.session()
        wishes.setdefault("options", self.options())
        run = await session.submit(prompt_with(script, text), **wishes)
        events = [event async for event in run]
        return Played(await run.result(), events)


def hermetic(env: dict[str, str]) -> type[ClaudeAdapter]:
    """Return the adapter, but that its children find this environment, whatever ours is."""

    @asynccontextmanager
    async def connected(spec: ClaudeSpec) -> AsyncGenerator[ClaudeConnection, None]:
        said = {k: v for k, v in spec.command.env.items() if k.startswith("CLAUDE_CODE_")}
        command = msgspec.structs.replace(spec.command, env={**said, **env})
        async with connect(msgspec.structs.replace(spec, command=command)) as connection:
            yield connection

    return type("HermeticClaude", (ClaudeAdapter,), {"connect": staticmethod(connected)})


@asynccontextmanager
async def open_house(
    server: ModelServer,
    program: Path,
    work: Path,
    env: dict[str, str],
    *,
    store: Path | None = None,
    **clocks: float,
) -> AsyncGenerator[House, None]:
    """Open a manager; when it is left, nothing that was started in `work` may live."""
    with trio.fail_after(PATIENCE):
        async with open_manager(
            store=store,
            adapters={"claude": ClaudeAdapter},
            environ=env,
            clocks=Clocks(**{"close": CLOSE, **clocks}),
        ) as manager:
            yield House(manager, server, program, work, env)
    assert list(living(work)) == []


def living(work: Path) -> Iterator[str]:
    """Name the processes that work there."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if (place / "cwd").readlink().is_relative_to(work):
                yield (place / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue


async def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait until something holds."""
    with trio.fail_after(seconds):
        while not condition():  # noqa: ASYNC110  # what others do has no event
            await trio.sleep(0.02)
