"""A manager with one real agent over ACP, whose only reachable host is the scripted model.

All traffic with its processes is recorded, and must be valid by the protocol's schemas.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
import trio

from sessionmgr.manager import Clocks, open_manager
from sessionmgr.model import Json
from sessionmgr.process import open_launcher
from sessionmgr.process.capture import CaptureLauncher
from sessionmgr.store import MemoryStore, Store
from sessionmgr.testing.model_server import ModelServer
from tests.real.acp.agents import FLAGS, InstalledAcpAgent
from tests.real.acp.contract import Message, Side, contract_of
from tests.real.agent_process import Line
from tests.real.harness import (
    CLOSE,
    PATIENCE,
    RealAgentHarness,
    line_of,
    nothing_is_left,
    roots,
    until,
    with_word,
)

TITLE: Final = "Kimi Code"
"""The command line that both Kimis give themselves; one of them overwrites its environment."""
OFFER = "client: initialize: no field client"


class AcpHarness(RealAgentHarness):
    """Runs of one agent over ACP."""

    def options(self, **more: Json) -> dict[str, Json]:
        flags: list[Json] = [*FLAGS[self.program.name]]
        return {"command": [str(self.program), *flags], **more}


@asynccontextmanager
async def open_house(
    server: ModelServer,
    agent: InstalledAcpAgent,
    work: Path,
    env: dict[str, str],
    *,
    provider: str | None = None,
    store: Store | Path | None = None,
    protocol: int = 1,
    **clocks: float,
) -> AsyncGenerator[AcpHarness]:
    """Open a manager; at the end no process may remain, and all traffic must be valid."""
    store = MemoryStore() if store is None else store
    talk = work.parent / "talk"
    name = provider or f"acp:{agent.id}"
    with trio.fail_after(PATIENCE):
        async with (
            open_launcher() as launcher,
            open_manager(
                store=store,
                launcher=CaptureLauncher(launcher, talk),
                environ=env,
                clocks=Clocks(**{"close": CLOSE, **clocks}),
            ) as manager,
        ):
            house = AcpHarness(name, manager, server, agent.program, work, env)
            yield house
    await nothing_is_left(house, store)
    for file, messages in _talk_in(talk, agent.program):
        faults = contract_of(protocol).faults(messages)
        if protocol == 2:  # an offer of version 2 can also be read as one of version 1
            faults = [each for each in faults if not each.startswith(OFFER)]
        assert faults == [], f"{file}: {faults[:5]}"


def _talk_in(directory: Path, program: Path) -> Iterator[tuple[str, list[tuple[Side, Message]]]]:
    """Yield the recorded traffic of each process of an agent in a directory."""
    sides: dict[str, Side] = {">": "client", "<": "agent"}
    for path in sorted(directory.glob(f"*-{program.name}.jsonl")):
        whole = path.read_bytes().rpartition(b"\n")[0]  # the last line may be incomplete
        entries: list[Line] = [msgspec.json.decode(each) for each in whole.splitlines()]
        yield (
            path.name,
            [
                (sides[each["dir"]], each["msg"])
                for each in entries
                if each["dir"] in sides and "msg" in each
            ],
        )


def processes_of(house: RealAgentHarness) -> list[int]:
    """Return the agent's own processes, without those that it starts itself."""
    place = house.program.parents[1]
    # Some change their command lines; most of these are run by the Node that is installed beside.
    return roots(
        pid
        for pid in {*with_word(house.mark), *with_word(TITLE)}
        if bytes(place) in line_of(pid)
        or (line_of(pid).startswith(TITLE.encode()) and works_at(pid, house.work))
        or program_at(pid).is_relative_to(place.parent)
    )


def works_at(pid: int, work: Path) -> bool:
    """Whether a process works in a directory."""
    try:
        return Path(f"/proc/{pid}/cwd").readlink().is_relative_to(work)
    except OSError:
        return False


def program_at(pid: int) -> Path:
    """Return the program of a process; an empty path if it has exited."""
    try:
        return Path(f"/proc/{pid}/exe").readlink()
    except OSError:
        return Path()


async def in_a_fresh_minute() -> None:
    """Wait until enough is left of the minute that what follows is in the same one."""
    await until(lambda: datetime.now(UTC).second < 45)


def age_sessions(home: Path) -> None:
    """Let the sessions that Gemini has recorded seem to be of an earlier minute: no run waits."""
    for file in [*home.glob(".gemini/tmp/*/chats/session-*")]:
        minute = file.name.split("-", 1)[1][: len("2026-01-01T00-00")]
        file.rename(file.with_name(file.name.replace(minute, "2026-01-01T00-00")))
