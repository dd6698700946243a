"""A manager with a real agent, whose only reachable host is the scripted model."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final, Unpack

import trio

from sessionmgr.adapter import Allow, ApprovalRequest, Approve, Decision
from sessionmgr.manager import Manager, RunHandle, SessionHandle
from sessionmgr.manager.run_plan import RunArguments
from sessionmgr.model import AnyEvent, Json, PermissionMode, RunResult
from sessionmgr.store import MemoryStore, Store
from sessionmgr.testing.invariants import broken_laws
from sessionmgr.testing.model_server import (
    ModelRequest,
    ModelSay,
    ModelScript,
    ModelServer,
    prompt_with,
)

PATIENCE = 240.0
"""Time limit for a test: several times its usual duration, and less than pytest's."""
CLOSE = 5.0
MARK: Final = "SESSIONMGR_HOUSE"
"""A variable in the environment of everything that is started in a harness."""


@dataclass(frozen=True)
class PlayedRun:
    """A run that has ended."""

    result: RunResult
    events: list[AnyEvent]

    @property
    def types(self) -> list[str]:
        return [each.type for each in self.events]


@dataclass
class RealAgentHarness:
    """Runs of a real agent, many of them concurrent if wanted."""

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
            self.provider,
            cwd=cwd or self.work,
            permission_mode=PermissionMode(mode),
            approve=approve,
        )

    def options(self, **more: Json) -> dict[str, Json]:
        return {"command": [str(self.program)], **more}

    def gate(self) -> Path:
        """Return a path without a file, for which a script can wait."""
        return self.work.parent / f"gate{next(self.numbers)}"

    def word(self) -> str:
        """Return a new unique word."""
        return f"word{next(self.numbers)}-{self.mark}"

    def turns_asked(self, word: str) -> int:
        """Return how often the model was asked for a turn, not for a title."""
        return sum(
            each.purpose == "turn" and word in str(each.items) for each in self.server.log.asked
        )

    def place(self, name: str = "place") -> Path:
        """Create a new directory."""
        place = self.work.parent / f"{name}{next(self.numbers)}"
        place.mkdir()
        return place

    async def submit(
        self, session: SessionHandle, prompt: str | ModelScript, **wishes: Unpack[RunArguments]
    ) -> RunHandle:
        """Start a run with a prompt, or with a script."""
        wishes.setdefault("options", self.options())
        wishes["env"] = {MARK: self.mark, **wishes.get("env", {})}
        said = prompt if isinstance(prompt, str) else prompt_with(prompt)
        return await session.submit(said, **wishes)

    async def play(
        self,
        script: ModelScript,
        session: SessionHandle | None = None,
        *,
        text: str = "",
        **wishes: Unpack[RunArguments],
    ) -> PlayedRun:
        """Play a script to its end."""
        session = session or await self.session()
        return await see(await self.submit(session, prompt_with(script, text), **wishes))

    async def goes_on(self, session: SessionHandle, **wishes: Unpack[RunArguments]) -> PlayedRun:
        """Check that the next run of a session succeeds."""
        played = await self.play([[ModelSay(text="All is well.")]], session, **wishes)
        result = played.result
        assert (result.status, result.text) == ("completed", "All is well."), result
        return played

    def asked(self, session_id: str | None) -> list[ModelRequest]:
        """Return the requests to the model in one of the agent's sessions."""
        return [each for each in self.server.log.asked if each.session == session_id]


async def see(run: RunHandle) -> PlayedRun:
    """Wait for the end of a run, and return it with its events."""
    events = [event async for event in run]
    return PlayedRun(await run.result(), events)


async def until_event(run: RunHandle, kind: str) -> AnyEvent:
    """Wait for an event of a run."""
    async for event in run:
        if event.type == kind:
            return event
    raise AssertionError(f"it ended before {kind}: {await run.result()}")


async def allow(_: ApprovalRequest) -> Decision:
    """Allow every request."""
    await trio.lowlevel.checkpoint()
    return Allow()


async def nothing_is_left(house: RealAgentHarness, store: Store | Path) -> None:
    """Check that no process of a harness remains, and that its records are valid."""
    assert list(living(house.work)) == []
    assert with_word(house.mark) == []
    if isinstance(store, MemoryStore):
        assert await broken_laws(store) == []


def living(work: Path) -> Iterator[str]:
    """Yield the names of the processes that work there."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if (place / "cwd").readlink().is_relative_to(work):
                yield (place / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue


def with_word(word: str) -> list[int]:
    """Return the processes with a word in their environment or on their command line."""
    found: list[int] = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            said = (place / "environ").read_bytes() + (place / "cmdline").read_bytes()
        except OSError:
            continue
        if word.encode() in said:
            found.append(int(place.name))
    return found


def programs_of(house: RealAgentHarness) -> list[int]:
    """Return the processes of the agent's program, without those that it starts itself."""
    return roots(
        pid for pid in with_word(house.mark) if line_of(pid).startswith(bytes(house.program))
    )


def line_of(pid: int) -> bytes:
    """Return the command line of a process; empty if it has exited."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def roots(pids: Iterable[int]) -> list[int]:
    """Return the processes whose parents are not among them.

    A process that is about to start another program is two for a moment, with equal command
    lines.
    """
    parents = {pid: parent_of(pid) for pid in pids}
    return [pid for pid, parent in parents.items() if parent is not None and parent not in parents]


def parent_of(pid: int) -> int | None:
    """Return the parent of a process; None if it has exited."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    return int(status.partition("\nPPid:")[2].split(maxsplit=1)[0])


def is_kept(home: Path, words: str) -> bool:
    """Whether an agent has recorded these words in a session below its home."""
    return any(words in text_of(each) for each in kept_sessions(home))


def kept_sessions(home: Path) -> Iterator[Path]:
    """Yield the files below a home in which agents record sessions.

    Agents create and remove directories there meanwhile, on which `Path.glob` fails (Python 3.11).
    """
    for place, _, names in os.walk(home):
        if not {"projects", "sessions"}.isdisjoint(Path(place).relative_to(home).parts):
            yield from (Path(place, name) for name in names if name.endswith(".jsonl"))


def text_of(file: Path) -> str:
    """Return the contents of a file; empty if it does not exist."""
    try:
        return file.read_text(errors="replace")
    except FileNotFoundError:
        return ""


async def until(condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Wait until a condition holds."""
    with trio.fail_after(seconds):
        await trio.lowlevel.checkpoint()
        while not condition():  # noqa: ASYNC110  # what others do has no event
            await trio.sleep(0.02)
