"""Probes of an agent's permissions, by effects on disk and network."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import trio

from sessionmgr.adapter import Approve, PermissionMap
from sessionmgr.manager import SessionHandle
from sessionmgr.model import Json, PermissionMode, RunResult
from sessionmgr.testing.model_server import ModelCall, ModelSay, ModelScript
from tests.real.harness import RealAgentHarness

READ, INSIDE, OUTSIDE, LINK, COMMAND, NETWORK = EFFECTS = (
    "a file read",
    "a file written inside",
    "one outside",
    "one outside, by a link that is inside",
    "a command run",
    "a connection made",
)
ALL: Final[set[str]] = set(EFFECTS)


class EffectProbes:
    """The probes of one harness."""

    def __init__(
        self,
        house: RealAgentHarness,
        port: int,
        permissions: PermissionMap,
        guarded: Sequence[str] = (),
    ) -> None:
        self.house: Final = house
        self.port: Final = port
        self.permissions: Final = permissions
        self.guarded: Final = tuple(guarded)
        """Files inside that configure what is run: writing one is an effect of its own name."""
        self.visitors: Final[dict[str, trio.Event]] = defaultdict(trio.Event)
        """The connections that arrived."""

    async def greet(self, stream: trio.SocketStream) -> None:
        """Record a connection."""
        async with stream:
            self.visitors[(await stream.receive_some(100)).decode().strip()].set()

    async def check(
        self,
        mode: str,
        wanted: set[str],
        approve: Approve | None = None,
        *,
        denied: int | None = None,
        options: Mapping[str, Json] | None = None,
        permissions: PermissionMap | None = None,
    ) -> None:
        """Let the model try everything: in a new session, and in the same one resumed."""
        cage = self.cage()
        session = await self.house.session(mode, cwd=cage.work, approve=approve)
        for turn in ("fresh", "resumed"):
            done, result = await self.try_all(cage, session, turn, None, **(options or {}))
            assert done == wanted, f"{mode}, {turn}: {done ^ wanted}"
            claims = permissions or self.permissions
            assert result.permission == claims.ask(self.house.provider, PermissionMode(mode))
            told = result.permission_denials
            expected = len(ALL.union(self.guarded) - wanted) if denied is None else denied
            assert len(told) == expected, f"{mode}, {turn}: {told}"

    def cage(self) -> ProbeDirectories:
        """Create directories for a session."""
        return ProbeDirectories(self.house.place(), self.guarded)

    async def try_all(
        self,
        cage: ProbeDirectories,
        session: SessionHandle,
        turn: str,
        mode: str | None,
        **more: Json,
    ) -> tuple[set[str], RunResult]:
        """Try everything in one run, and return the effects."""
        name = f"{cage.place.name}-{turn}"
        visit = f"(echo {name} >/dev/tcp/127.0.0.1/{self.port}) && echo we''nt as {name}"
        script = cage.tries(turn, visit)
        options = self.house.options(**more)
        asked = PermissionMode(mode) if mode else None
        played = await self.house.play(script, session, permission_mode=asked, options=options)
        assert played.result.status == "completed", played.result
        read = [each.text for asked in self.house.server.log.asked for each in asked.results]
        was_read = any(cage.secret(turn) in each for each in read)
        with trio.move_on_after(60 if any(f"went as {name}" in each for each in read) else 0):
            await self.visitors[name].wait()  # a connection that was made may not be accepted yet
        found = {READ: was_read, NETWORK: self.visitors[name].is_set()}
        return cage.done(turn) | {each for each, is_so in found.items() if is_so}, played.result


class ProbeDirectories:
    """The directories of one session: one to work in, and one outside."""

    def __init__(self, place: Path, guarded: Sequence[str] = ()) -> None:
        self.place: Final = place
        self.guarded: Final = guarded
        self.work: Final = place / "work"
        self.outside: Final = place / "outside"
        for each in (self.work, self.outside):
            each.mkdir(parents=True)
        (self.work / "link").symlink_to(self.outside)

    def secret(self, turn: str) -> str:
        """Return a text that can be known only by reading it."""
        return f"the secret of {turn} in {self.place.name}"

    def tries(self, turn: str, visit: str) -> ModelScript:
        """Return a script that tries everything in sequence."""
        secret = self.work / f"{turn}-secret"
        secret.write_text(self.secret(turn))
        guarded = [self.work / each for each in self.guarded]
        for each in guarded:
            each.unlink(missing_ok=True)  # left by the turn before
        written = (self.work / turn, self.outside / turn, self.work / "link" / f"{turn}-linked")
        tries = [
            ModelCall(tool="read", input={"path": str(secret)}),
            *(
                ModelCall(tool="write", input={"path": str(each), "content": "x"})
                for each in written
            ),
            *(
                ModelCall(tool="write", input={"path": str(each), "content": "{}"})
                for each in guarded
            ),
            ModelCall(tool="shell", input={"command": f"cp {secret} {self.work / turn}-copy"}),
            ModelCall(tool="shell", input={"command": visit}),
        ]
        return [*([each] for each in tries), [ModelSay(text="Tried.")]]

    def done(self, turn: str) -> set[str]:
        """Return the effects on the disk."""
        marks = {
            INSIDE: self.work / turn,
            OUTSIDE: self.outside / turn,
            LINK: self.outside / f"{turn}-linked",
            COMMAND: self.work / f"{turn}-copy",
            **{each: self.work / each for each in self.guarded},
        }
        return {effect for effect, mark in marks.items() if mark.exists()}


@asynccontextmanager
async def open_canaries(
    house: RealAgentHarness, permissions: PermissionMap, guarded: Sequence[str] = ()
) -> AsyncGenerator[EffectProbes]:
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    canaries = EffectProbes(house, listeners[0].socket.getsockname()[1], permissions, guarded)
    async with trio.open_nursery() as nursery:
        await nursery.start(trio.serve_listeners, canaries.greet, listeners)
        yield canaries
        nursery.cancel_scope.cancel()
