"""A manager with a real agent in it, which knows a scripted model and nobody else."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final, Unpack

import trio

from sessionmgr.manager import Manager, RunHandle, SessionHandle
from sessionmgr.manager.plan import Wishes
from sessionmgr.model import AnyEvent, Json, RunResult
from sessionmgr.provider import Allow, ApprovalRequest, Approve, Decision
from sessionmgr.store import MemoryStore, Store
from sessionmgr.testing.laws import broken_laws
from sessionmgr.testing.model_server import ModelRequest, ModelServer, Say, Script, prompt_with

PATIENCE = 120.0
CLOSE = 5.0
MARK: Final = "SESSIONMGR_HOUSE"
"""A variable that everything finds which is started in a house."""


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
    """Where real runs are played, as many at once as one likes."""

    provider: str
    manager: Manager
    server: ModelServer
    program: Path
    work: Path
    env: dict[str, str]
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    numbers: count[int] = field(default_factory=count)

    async def session(
        self, mode: str = "default", *, cwd: Path | None = None, approve: Approve | None = None
    ) -> SessionHandle:
        return await self.manager.open_session(
            self.provider, cwd=cwd or self.work, permission_mode=mode, approve=approve
        )

    def options(self, **more: Json) -> dict[str, Json]:
        return {"command": [str(self.program)], **more}

    def word(self) -> str:
        """Make a word that nobody has said before."""
        return f"word{next(self.numbers)}-{self.mark}"

    def place(self, name: str = "place") -> Path:
        """Make a directory that nobody works in."""
        place = self.work.parent / f"{name}{next(self.numbers)}"
        place.mkdir()
        return place

    async def submit(
        self, session: SessionHandle, prompt: str | Script, **wishes: Unpack[Wishes]
    ) -> RunHandle:
        """Start a run with a prompt, or with a script."""
        wishes.setdefault("options", self.options())
        wishes["env"] = {MARK: self.mark, **wishes.get("env", {})}
        said = prompt if isinstance(prompt, str) else prompt_with(prompt)
        return await session.submit(said, **wishes)

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
        return await see(await self.submit(session, prompt_with(script, text), **wishes))

    async def goes_on(self, session: SessionHandle, **wishes: Unpack[Wishes]) -> Played:
        """See that the next run of a session goes well."""
        played = await self.play([[Say(text="All is well.")]], session, **wishes)
        result = played.result
        assert (result.status, result.text) == ("completed", "All is well."), result
        return played

    def asked(self, session_id: str | None) -> list[ModelRequest]:
        """Return what the model was asked in one session of the agent's."""
        return [each for each in self.server.log.asked if each.session == session_id]


async def see(run: RunHandle) -> Played:
    """See a run to its end."""
    events = [event async for event in run]
    return Played(await run.result(), events)


async def until_event(run: RunHandle, kind: str) -> AnyEvent:
    """Wait for an event of a run."""
    async for event in run:
        if event.type == kind:
            return event
    raise AssertionError(f"it ended before {kind}: {await run.result()}")


async def allow(_: ApprovalRequest) -> Decision:
    """Answer that it may."""
    await trio.lowlevel.checkpoint()
    return Allow()


async def nothing_is_left(house: House, store: Store | Path) -> None:
    """See that nothing of a house lives, and that its record is lawful."""
    assert list(living(house.work)) == []
    assert with_word(house.mark) == []
    if isinstance(store, MemoryStore):
        assert await broken_laws(store) == []


def living(work: Path) -> Iterator[str]:
    """Name the processes that work there."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if (place / "cwd").readlink().is_relative_to(work):
                yield (place / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue


def with_word(word: str) -> list[int]:
    """Return the processes that carry a word in their environment or on their command line."""
    found: list[int] = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            said = (place / "environ").read_bytes() + (place / "cmdline").read_bytes()
        except OSError:
            continue
        if word.encode() in said:
            found.append(int(place.name))
    return found


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until something holds."""
    with trio.fail_after(seconds):
        await trio.lowlevel.checkpoint()
        while not condition():  # noqa: ASYNC110  # what others do has no event
            await trio.sleep(0.02)
