"""What Claude Code may do in each permission mode: the effects on disk and network, no promises."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, TypedDict, Unpack

import trio

from sessionmgr.manager import SessionHandle
from sessionmgr.model import PermissionMode, RunResult, RunStatus
from sessionmgr.provider import Approve
from sessionmgr.testing.model_server import Call, Say, Script
from sessionmgr_adapters.claude.adapter import PERMISSIONS
from tests.real.claude.house import House, allow

READ, INSIDE, OUTSIDE, LINK, COMMAND, NETWORK = EFFECTS = (
    "a file read",
    "a file written inside",
    "one outside",
    "one outside, by a link that is inside",
    "a command run",
    "a connection made",
)
ALL: Final[set[str]] = set(EFFECTS)
# What is done in which mode: with nobody to ask, and with somebody who allows all.
UNASKED: Final[dict[str, set[str]]] = {
    "default": {READ},
    "accept_edits": {READ, INSIDE},
    "plan": {READ},
    "full_auto": ALL,
    "dangerously_skip_permissions": ALL,
}
CHANGES: Final = ("plan", "full_auto", "plan", "accept_edits", "plan")
ALLOWED: Final[dict[str, set[str]]] = {"default": ALL, "accept_edits": ALL, "plan": {READ}}


class Canaries:
    """What can be played of a run's effects."""

    def __init__(self, house: House, port: int) -> None:
        self.house: Final = house
        self.port: Final = port
        self.visitors: Final[dict[str, trio.Event]] = defaultdict(trio.Event)
        """Who came by the network."""

    async def greet(self, stream: trio.SocketStream) -> None:
        """Note who comes."""
        async with stream:
            self.visitors[(await stream.receive_some(100)).decode().strip()].set()

    async def check(self, mode: str, wanted: set[str], approve: Approve | None = None) -> None:
        """Let the model try everything: in a new session, and in the same one resumed."""
        cage = Cage(self.house.place())
        session = await self.house.session(mode, cwd=cage.work, approve=approve)
        for turn in ("fresh", "resumed"):
            done, result = await self.try_all(cage, session, turn, keep=False)
            assert done == wanted, f"{mode}, {turn}"
            claimed = PERMISSIONS.ask("claude", PermissionMode(mode))
            assert result.permission == claimed
            denied = len(result.permission_denials)
            assert denied == len(ALL - wanted), f"{mode}, {turn}: {result.permission_denials}"

    async def try_all(
        self, cage: Cage, session: SessionHandle, turn: str, **wishes: Unpack[Tries]
    ) -> tuple[set[str], RunResult]:
        """Have everything tried in one run, and see what came of it."""
        name = f"{cage.place.name}-{turn}"
        keep = wishes.get("keep", True)
        mode = wishes.get("mode")
        script = cage.tries(turn, f"exec 3<>/dev/tcp/127.0.0.1/{self.port}; echo {name} >&3")
        options = self.house.options(keep=keep)
        played = await self.house.play(script, session, permission_mode=mode, options=options)
        assert played.result.status == "completed", played.result
        was_read = any(
            cage.secret(turn) in result.text
            for asked in self.house.server.log.asked
            for result in asked.results
        )
        with trio.move_on_after(5 if COMMAND in cage.done(turn) else 0):
            await self.visitors[name].wait()  # who has come may not have been let in yet
        found = {READ: was_read, NETWORK: self.visitors[name].is_set()}
        return cage.done(turn) | {each for each, is_so in found.items() if is_so}, played.result


class Tries(TypedDict, total=False):
    """How everything is tried."""

    mode: str
    keep: bool


class Cage:
    """A place for one session: a directory to work in, and one that is outside."""

    def __init__(self, place: Path) -> None:
        self.place: Final = place
        self.work: Final = place / "work"
        self.outside: Final = place / "outside"
        for each in (self.work, self.outside):
            each.mkdir(parents=True)
        (self.work / "link").symlink_to(self.outside)

    def secret(self, turn: str) -> str:
        """Return what can be known only by reading."""
        return f"the secret of {turn} in {self.place.name}"

    def tries(self, turn: str, visit: str) -> Script:
        """Return a script that tries everything, one after the other."""
        secret = self.work / f"{turn}-secret"
        secret.write_text(self.secret(turn))
        written = (self.work / turn, self.outside / turn, self.work / "link" / f"{turn}-linked")
        tries = [
            Call(tool="read", input={"path": str(secret)}),
            *(Call(tool="write", input={"path": str(each), "content": "x"}) for each in written),
            Call(tool="shell", input={"command": f"cp {secret} {self.work / turn}-copy"}),
            Call(tool="shell", input={"command": visit}),
        ]
        return [*([each] for each in tries), [Say(text="Tried.")]]

    def done(self, turn: str) -> set[str]:
        """Return what was done, as the disk has it."""
        marks = {
            INSIDE: self.work / turn,
            OUTSIDE: self.outside / turn,
            LINK: self.outside / f"{turn}-linked",
            COMMAND: self.work / f"{turn}-copy",
        }
        return {effect for effect, mark in marks.items() if mark.exists()}


@asynccontextmanager
async def open_canaries(house: House) -> AsyncGenerator[Canaries]:
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    canaries = Canaries(house, listeners[0].socket.getsockname()[1])
    async with trio.open_nursery() as nursery:
        await nursery.start(trio.serve_listeners, canaries.greet, listeners)
        yield canaries
        nursery.cancel_scope.cancel()


async def check_all(
    house: House, wanted: Mapping[str, set[str]], approve: Approve | None = None
) -> None:
    """Have everything tried in these modes, side by side."""
    async with open_canaries(house) as canaries, trio.open_nursery() as nursery:
        for mode, effects in wanted.items():
            nursery.start_soon(canaries.check, mode, effects, approve)


async def test_with_nobody_to_ask_only_that_is_done_which_the_mode_lets_through(
    house: House,
) -> None:
    await check_all(house, UNASKED)


async def test_what_is_allowed_is_done_but_for_the_effects_of_a_plan(house: House) -> None:
    await check_all(house, ALLOWED, allow)


async def test_an_older_one_does_no_more_either(old_house: House) -> None:
    some = {mode: UNASKED[mode] for mode in ("default", "accept_edits")}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(check_all, old_house, some)
        nursery.start_soon(check_all, old_house, {"plan": ALLOWED["plan"]}, allow)


async def test_the_mode_of_one_run_is_not_that_of_the_next(any_house: House) -> None:
    async with open_canaries(any_house) as canaries:
        cage = Cage(any_house.place())
        session = await any_house.session(cwd=cage.work)
        for number, mode in enumerate(CHANGES):
            done, _ = await canaries.try_all(cage, session, f"turn{number}", mode=mode)
            assert done == UNASKED[mode], f"{mode}, turn {number}"


def offered(house: House) -> set[str]:
    names = {each.name for each in house.server.log.asked[-1].tools}
    return names - {"DeferredToolPlaceholder"}


async def test_tools_that_are_denied_are_not_there_and_rules_are_kept(house: House) -> None:
    script: Script = [
        [Call(tool="Bash", input={"command": "touch x", "description": "d"})],
        [Say(text="done")],
    ]
    played = await house.play(
        script, await house.session("full_auto"), tools_denied=["Bash(touch *)", "WebFetch"]
    )
    assert not Path(house.work, "x").exists()
    assert played.result.permission_denials
    assert "Bash" in offered(house)
    assert not offered(house) & {"WebFetch", "CronCreate", "AskUserQuestion", "ScheduleWakeup"}


async def test_only_the_tools_that_are_allowed_are_there(house: House) -> None:
    played = await house.play([[Say(text="done")]], tools_allowed=["Read", "Bash"])
    assert played.result.status is RunStatus.COMPLETED, played.result.failure
    assert offered(house) == {"Read", "Bash"}
    await house.play([[Say(text="done")]], tools_allowed=[])
    assert offered(house) == set()
