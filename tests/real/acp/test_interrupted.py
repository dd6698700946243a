"""A job whose owner is killed inside a tool, before a reboot, does nothing twice with any agent."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import AsyncGenerator, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import trio

from sessionmgr.model import Json
from sessionmgr.process import procfs
from sessionmgr.store import open_sqlite_store
from sessionmgr.testing.invariants import broken_laws
from sessionmgr.testing.model_server import (
    IsolatedEnvironment,
    ModelCall,
    ModelReply,
    ModelRequest,
    ModelSay,
    ModelScript,
    ModelServer,
    open_model_server,
    prompt_with,
)
from tests.cli.command import environment
from tests.real.acp.agents import InstalledAcpAgent
from tests.real.acp.harness import age_sessions
from tests.real.harness import until
from tests.real.test_interrupted import NOTICE, InterruptedJob, long_call

WORDS = b"sleep 1000"


def went_on(request: ModelRequest) -> ModelReply | None:
    """Answer an agent that received the notice of the interruption."""
    return (ModelSay(text="went on"),) if NOTICE in str(request.items) else None


@pytest.fixture
async def server() -> AsyncGenerator[ModelServer]:
    async with open_model_server(went_on) as server:
        yield server
    assert server.log.strangers == []


@pytest.fixture
async def job(
    server: ModelServer, hermitage: IsolatedEnvironment, acp_agent: InstalledAcpAgent
) -> AsyncGenerator[InterruptedJob]:
    env = environment(hermitage.home, **acp_agent.environment(hermitage))
    work = hermitage.root / "job"
    work.mkdir()
    job = InterruptedJob(f"acp:{acp_agent.id}", server, hermitage.root, work, env)
    kind = "codex" if acp_agent.id == "codex-acp" else "claude"
    script: ModelScript = [
        [ModelCall(tool="shell", input={"command": "echo pushed >> done"})],
        [long_call(kind, "echo again >> done; touch began; sleep 1000")],
        [ModelSay(text="never said")],
    ]
    options: dict[str, Json] = {"command": [*acp_agent.command]}
    given: dict[str, Json] = {"permission_mode": "full_auto", "cwd": str(work), "options": options}
    job.write({"id": "a", "provider": job.provider, "prompt": prompt_with(script), **given})
    yield job
    with trio.CancelScope(shield=True):
        for process in job.started:
            if process.returncode is None:
                process.kill()
            await process.wait()


def is_recorded(job: InterruptedJob) -> bool:
    """Whether the agent has recorded its last call: otherwise there is nothing to resume."""
    return any(WORDS in each for each in records(job))


def records(job: InterruptedJob) -> Iterator[bytes]:
    for place, _, names in os.walk(job.root):
        if not {"home", "xdg", "codex"}.isdisjoint(Path(place).relative_to(job.root).parts):
            for name in names:
                try:
                    yield Path(place, name).read_bytes()
                except OSError:
                    continue


def reboot(job: InterruptedJob) -> None:
    """Let the record of the killed manager be of another boot, with the pid of a living process."""
    pid = os.getpid()
    with closing(sqlite3.connect(job.store)) as connection, connection:
        changed = connection.execute(
            "update leases set boot_id = 'of before', pid = ?, start = ? where expires is not null",
            (pid, procfs.start_time(pid)),
        )
        assert changed.rowcount == 1


async def test_a_job_that_is_cut_in_a_tool_is_resumed_and_does_nothing_twice(
    job: InterruptedJob,
) -> None:
    batch = await job.start(job.batch())
    await until((job.work / "began").exists)
    await until(lambda: is_recorded(job) and job.recorded() == 2)
    batch.send_signal(signal.SIGKILL)
    await job.is_gone(batch)
    reboot(job)
    age_sessions(job.root / "home")
    assert await job.ends(await job.start(job.batch())) == 0
    result = job.result()
    assert str(result["text"]).endswith("went on")  # some agents say more
    told = (result["status"], result["attempt"], result["side_effects"])
    assert told == ("completed", 2, True), result
    assert result["resumed_from"]
    assert job.pushed() == ["pushed", "again"]
    async with open_sqlite_store(job.store) as store:
        assert await broken_laws(store) == []
