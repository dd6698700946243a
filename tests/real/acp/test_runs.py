"""Runs of every agent over ACP through the manager: turns, a cancel, files, and plan mode."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
import trio

from sessionmgr.adapter import Allow, ApprovalRequest, Decision, PermissionRefused
from sessionmgr.manager import Manager, SessionHandle, open_manager
from sessionmgr.model import Json, PermissionMode, RunResult, RunStatus
from sessionmgr.store import MemoryStore
from sessionmgr.testing.model_server import (
    IsolatedEnvironment,
    ModelCall,
    ModelHang,
    ModelSay,
    ModelScript,
    prompt_with,
)
from sessionmgr_adapters.acp.bundled_agents import BUNDLED
from tests.real.acp.agents import InstalledAcpAgent

PATIENCE = 120


@asynccontextmanager
async def session_of(
    agent: InstalledAcpAgent, isolated: IsolatedEnvironment, mode: str, *, asks: bool = False
) -> AsyncGenerator[tuple[SessionHandle, dict[str, Json]], None]:
    """Open a session of an agent; `asks` allows what it asks about."""

    async def allow(_: ApprovalRequest) -> Decision:
        return Allow()

    options: dict[str, Json] = {"command": [*agent.command]}
    environment = agent.environment(isolated)
    with trio.fail_after(PATIENCE):
        async with open_manager(store=MemoryStore(), environ=environment) as manager:
            assert isinstance(manager, Manager)
            session = await manager.open_session(
                f"acp:{agent.id}",
                cwd=isolated.work,
                permission_mode=PermissionMode(mode),
                approve=allow if asks else None,
            )
            yield session, options


async def result_of(session: SessionHandle, prompt: str, options: dict[str, Json]) -> RunResult:
    async with session.start(prompt, options=options) as run:
        return await run.result()


def says(text: str) -> str:
    return prompt_with([[ModelSay(text=text)]], "Answer.")


@pytest.mark.parametrize("version", [1, 2])
async def test_a_session_answers_is_cancelled_and_goes_on(
    acp_agent: InstalledAcpAgent, hermitage: IsolatedEnvironment, version: int
) -> None:
    async with session_of(acp_agent, hermitage, "full_auto") as (session, options):
        options["protocol"] = version
        if version not in BUNDLED[acp_agent.id].protocols:
            failure = (await result_of(session, says("x"), options)).failure
            assert failure is not None
            assert "options.protocol: version 2 does not work here; known: 1" in failure.message
            return
        first = await result_of(session, says("It is the first answer."), options)
        assert (first.status, first.text) == (RunStatus.COMPLETED, "It is the first answer.")
        hangs = prompt_with([[ModelSay(text="Half of it.", whole=False), ModelHang()]], "Answer.")
        async with session.start(hangs, options=options) as run:
            async for event in run:
                if event.type == "message_streamed":
                    run.cancel()
            assert (await run.result()).status is RunStatus.CANCELLED
        last = await result_of(session, says("It is the last answer."), options)
        assert (last.status, last.text) == (RunStatus.COMPLETED, "It is the last answer.")
        assert last.provider_session_id == first.provider_session_id


def writes(place: Path) -> str:
    """Return a prompt whose model writes a file by each of its tools."""
    return prompt_with(
        [
            [ModelCall(tool="write", input={"path": f"{place}/written.txt", "content": "x\n"})],
            [ModelCall(tool="shell", input={"command": f"echo x > {place}/echoed.txt"})],
            [ModelSay(text="Done.")],
        ],
        "Write.",
    )


async def test_what_the_caller_allows_is_done(
    acp_agent: InstalledAcpAgent, hermitage: IsolatedEnvironment
) -> None:
    async with session_of(acp_agent, hermitage, "accept_edits", asks=True) as (session, options):
        done = await result_of(session, writes(hermitage.work), options)
        assert done.status is RunStatus.COMPLETED
    found = sorted(each.name for each in hermitage.work.iterdir())
    assert found == ["echoed.txt", "written.txt"]


async def test_plan_mode_writes_nothing(
    acp_agent: InstalledAcpAgent, hermitage: IsolatedEnvironment
) -> None:
    async with session_of(acp_agent, hermitage, "plan") as (session, options):
        if PermissionMode.PLAN not in BUNDLED[acp_agent.id].modes:
            with pytest.raises(PermissionRefused, match="does not support"):
                await session.submit(writes(hermitage.work), options=options)
        else:
            done = await result_of(session, writes(hermitage.work), options)
            assert done.status is RunStatus.COMPLETED
    assert list(hermitage.work.iterdir()) == []


class Canary(NamedTuple):
    """A change that a model wants, and the file that shows it."""

    name: str
    file: str
    moves: ModelScript


def canaries(work: Path, outside: Path) -> list[Canary]:
    """Return changes by each kind of tool, inside and outside of the directory."""
    edited, created = work / "edited.txt", {"content": "changed\n"}
    read = ModelCall(tool="read", input={"path": str(edited)})
    edit = ModelCall(tool="edit", input={"path": str(edited), "old": "original", "new": "changed"})
    found = [Canary("edit inside", str(edited), [[read], [edit]])]
    for where, place in (("inside", work), ("outside", outside)):
        file, made = f"{place}/written.txt", f"{place}/echoed.txt"
        write = ModelCall(tool="write", input={"path": file, **created})
        shell = ModelCall(tool="shell", input={"command": f"echo changed > {made}"})
        found += [
            Canary(f"write {where}", file, [[write]]),
            Canary(f"shell {where}", made, [[shell]]),
        ]
    return found


def is_changed(canary: Canary) -> bool:
    file = Path(canary.file)
    return file.exists() and file.read_text() == "changed\n"


UNASKED = {"codex-acp": {"edit inside", "write inside", "shell inside"}}
"""What an agent does without a question in our mode default: Codex has a sandbox."""


async def test_in_the_default_mode_nothing_is_changed_that_the_caller_denies(
    acp_agent: InstalledAcpAgent, hermitage: IsolatedEnvironment
) -> None:
    changed: set[str] = set()
    with TemporaryDirectory(dir="/var/tmp") as outside:  # Codex may write in /tmp
        async with session_of(acp_agent, hermitage, "default") as (session, options):
            for canary in canaries(hermitage.work, Path(outside)):
                (hermitage.work / "edited.txt").write_text("original\n")
                script: ModelScript = [*canary.moves, [ModelSay(text="Done.")]]
                done = await result_of(session, prompt_with(script, canary.name), options)
                assert done.status is RunStatus.COMPLETED, canary
                if is_changed(canary):
                    changed.add(canary.name)
    assert changed == UNASKED.get(acp_agent.id, set())
