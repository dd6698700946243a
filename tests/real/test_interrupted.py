"""A job interrupted inside a tool is resumed with a notice, and does nothing twice."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trio

from sessionmgr.model import Json
from sessionmgr.process import procfs
from sessionmgr.store import open_sqlite_store
from sessionmgr.testing.invariants import broken_laws
from sessionmgr.testing.model_server import (
    ModelCall,
    ModelReply,
    ModelRequest,
    ModelSay,
    ModelScript,
    ModelServer,
    open_model_server,
    prompt_with,
)
from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment
from tests.cli.command import COMMAND, environment
from tests.real.agent_programs import CLAUDE, CODEX, program_of
from tests.real.harness import (
    PATIENCE,
    is_kept,
    kept_sessions,
    line_of,
    roots,
    text_of,
    until,
    with_word,
)

NEWEST = [("claude", CLAUDE[0]), ("codex", CODEX[0])]
NOTICE = "You were interrupted while a tool call was running"
AGENTS = [*(("claude", each) for each in CLAUDE), *(("codex", each) for each in CODEX)]
HOST = """
import sys, trio
from sessionmgr import open_manager, run_batch
from sessionmgr.batch import ChildHost

async def main(jobs, out, store, pid):
    async with open_manager(store=store) as manager:
        host = ChildHost(store)
        async with run_batch(manager, jobs, out=out, host=host) as batch:
            open(pid, "w").write(str(host.pid))
            await batch.wait()

trio.run(main, *sys.argv[1:])
"""


def went_on(request: ModelRequest) -> ModelReply | None:
    """Answer an agent that received the notice of the interruption."""
    return (ModelSay(text="went on"),) if request.prompt.startswith(NOTICE) else None


@pytest.fixture
async def server() -> AsyncGenerator[ModelServer]:
    async with open_model_server(went_on) as server:
        yield server
    assert server.log.strangers == []


@pytest.fixture(params=AGENTS, ids="-".join)
def program(request: pytest.FixtureRequest) -> tuple[str, Path]:
    name, version = request.param
    return name, program_of(name, version)


@dataclass
class InterruptedJob:
    """A batch of one job, which pushes something and then stays in a tool."""

    provider: str
    server: ModelServer
    root: Path
    work: Path
    env: dict[str, str]
    started: list[trio.Process] = field(default_factory=list[trio.Process])
    job: dict[str, Json] = field(default_factory=dict[str, Json])

    def write(self, job: dict[str, Json]) -> None:
        """Write the batch's job."""
        self.job = job
        (self.root / "jobs.jsonl").write_text(json.dumps(job))

    @property
    def store(self) -> Path:
        return self.root / "runs.db"

    def batch(self, *flags: str) -> list[str]:
        store = ["--store", str(self.store)]
        return [*COMMAND, "batch", "jobs.jsonl", "-o", "out", "-q", *store, *flags]

    def host(self) -> list[str]:
        return [sys.executable, "-c", HOST, "jobs.jsonl", "out", str(self.store), "host.pid"]

    async def start(self, command: list[str]) -> trio.Process:
        process = await trio.lowlevel.open_process(
            command, env=self.env, cwd=self.root, stdout=subprocess.DEVNULL
        )
        self.started.append(process)
        return process

    async def in_its_tool(self) -> None:
        """Wait until the second call is running, and all of that is recorded."""
        await until((self.work / "began").exists)
        await until(lambda: is_kept(self.root, "sleep 1000"))
        await until(lambda: self.recorded() == 2)

    def recorded(self) -> int:
        """Return the number of stored tool calls."""
        with closing(sqlite3.connect(self.store)) as connection:
            rows = connection.execute("select body from events").fetchall()
        return sum(b"tool_call_started" in bytes(body) for (body,) in rows)

    async def is_gone(self, batch: trio.Process) -> None:
        """Wait until a killed batch and all its processes have exited."""
        await batch.wait()
        await until(lambda: not with_word(str(self.root)))

    async def ends(self, process: trio.Process) -> int:
        with trio.fail_after(PATIENCE):
            return await process.wait()

    def result(self) -> dict[str, Json]:
        (line,) = (self.root / "out" / "results.jsonl").read_text().splitlines()
        found: dict[str, Json] = json.loads(line)
        return found

    def pushed(self) -> list[str]:
        """Return the effects of the tools, in order."""
        return (self.work / "done").read_text().split()

    def notices(self) -> list[str]:
        """Return the prompts that notify the model of an interruption."""
        asked = [each.prompt for each in self.server.log.asked]
        return [each for each in asked if each.startswith(NOTICE)]


def long_call(provider: str, command: str) -> ModelCall:
    """Return a call of a command that the agent waits for: Codex by default only ten seconds."""
    if provider == "claude":
        return ModelCall(tool="shell", input={"command": command})
    return ModelCall(tool="exec_command", input={"cmd": command, "yield_time_ms": 30_000})


@pytest.fixture
async def scene(
    program: tuple[str, Path], server: ModelServer, hermitage: IsolatedEnvironment
) -> AsyncGenerator[InterruptedJob]:
    provider, path = program
    said = hermitage.claude() if provider == "claude" else hermitage.codex()
    places = {"IS_SANDBOX": "1", "HOME": str(hermitage.home)}
    path_too = os.pathsep.join([str(path.parent), os.environ["PATH"]])
    env = environment(hermitage.home, **{**said, **places, "PATH": path_too})
    work = hermitage.root / "job"
    work.mkdir()
    scene = InterruptedJob(provider, server, hermitage.root, work, env)
    script: ModelScript = [
        [ModelCall(tool="shell", input={"command": "echo pushed >> done"})],
        [long_call(provider, "echo again >> done; touch began; sleep 1000")],
        [ModelSay(text="never said")],
    ]
    job: dict[str, Json] = {
        "id": "a",
        "provider": provider,
        "prompt": prompt_with(script),
        "permission_mode": "full_auto",
        "cwd": str(work),
    }
    scene.write(job)
    yield scene
    with trio.CancelScope(shield=True):
        for process in scene.started:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def kill_batch(scene: InterruptedJob) -> trio.Process:
    """Kill the batch, and run it again."""
    batch = await scene.start(scene.batch())
    await scene.in_its_tool()
    batch.send_signal(signal.SIGKILL)
    await scene.is_gone(batch)
    return await scene.start(scene.batch())


async def kill_host(scene: InterruptedJob) -> trio.Process:
    """Kill the process in which the agents run; the batch itself survives."""
    batch = await scene.start(scene.host())
    await scene.in_its_tool()
    await until(lambda: bool(text_of(scene.root / "host.pid")))
    os.kill(int(text_of(scene.root / "host.pid")), signal.SIGKILL)
    return batch


async def reboot(scene: InterruptedJob) -> trio.Process:
    """Kill the batch, reboot the machine (simulated), and run the batch again.

    The record of its manager is then of another boot; its pid belongs to a living process, which
    only the boot id distinguishes from the manager.
    """
    batch = await scene.start(scene.batch())
    await scene.in_its_tool()
    batch.send_signal(signal.SIGKILL)
    await scene.is_gone(batch)
    pid = os.getpid()
    with closing(sqlite3.connect(scene.store)) as connection, connection:
        changed = connection.execute(
            "update leases set boot_id = 'of before', pid = ?, start = ? where expires is not null",
            (pid, procfs.start_time(pid)),
        )
        assert changed.rowcount == 1
    return await scene.start(scene.batch())


async def kill_agent(scene: InterruptedJob) -> trio.Process:
    """Kill the agent itself; the batch tries again."""
    batch = await scene.start(scene.batch())
    await scene.in_its_tool()
    programs = (pid for pid in with_word(str(scene.root)) if is_agent(pid))
    (agent,) = roots(programs)
    os.kill(agent, signal.SIGKILL)
    return batch


def is_agent(pid: int) -> bool:
    line = line_of(pid)
    return b"\0app-server\0" in line or b"\0--print\0" in line


WAYS = [kill_batch, kill_host, kill_agent, reboot]


@pytest.mark.parametrize("cut", WAYS, ids=lambda each: each.__name__)
async def test_a_job_that_is_cut_in_a_tool_is_resumed_and_does_nothing_twice(
    scene: InterruptedJob, cut: Callable[[InterruptedJob], Awaitable[trio.Process]]
) -> None:
    batch = await cut(scene)
    assert await scene.ends(batch) == 0
    result = scene.result()
    told = (result["status"], result["attempt"], result["side_effects"], result["text"])
    assert told == ("completed", 2, True, "went on")
    assert result["resumed_from"]
    assert scene.pushed() == ["pushed", "again"]
    notices = set(scene.notices())
    assert len(notices) == 1
    tool = "Bash" if scene.provider == "claude" else "shell"
    assert f"({tool}). Its outcome is unknown" in notices.pop()
    async with open_sqlite_store(scene.store) as store:
        assert await broken_laws(store) == []


def forget_sessions(scene: InterruptedJob) -> None:
    """Remove the agent's own records of its sessions."""
    for kept in list(kept_sessions(scene.root)):
        kept.unlink()


async def test_a_job_whose_session_is_lost_is_started_over_only_when_that_is_decided(
    scene: InterruptedJob,
) -> None:
    batch = await scene.start(scene.batch())
    await scene.in_its_tool()
    batch.send_signal(signal.SIGKILL)
    await scene.is_gone(batch)
    forget_sessions(scene)
    for _ in range(2):
        assert await scene.ends(await scene.start(scene.batch())) == 3
        result = scene.result()
        assert (result["status"], result["attempt"], result["side_effects"]) == ("failed", 2, True)
        failure = result["failure"]
        assert isinstance(failure, dict)
        assert failure["kind"] == "session_not_found"
        assert "--retry-from fresh starts it over" in str(failure["message"])
        assert scene.pushed() == ["pushed", "again"]
    (scene.work / "began").unlink()
    fresh = await scene.start(scene.batch("--only", "a", "--retry-from", "fresh"))
    await until((scene.work / "began").exists)
    assert scene.pushed() == ["pushed", "again"] * 2
    fresh.send_signal(signal.SIGTERM)
    await scene.ends(fresh)


@pytest.mark.parametrize("program", NEWEST, indirect=True, ids="-".join)
async def test_a_job_that_times_out_in_a_tool_is_resumed_by_the_same_command(
    scene: InterruptedJob,
) -> None:
    # Time for the call before it, on a slow machine; less than Codex waits for a command.
    timed = [*scene.batch("--clock", "tool=20", "--retries", "1")]
    assert await scene.ends(await scene.start(timed)) == 0
    result = scene.result()
    assert (result["status"], result["attempt"], result["text"]) == ("completed", 2, "went on")
    assert scene.pushed() == ["pushed", "again"]
    assert len(set(scene.notices())) == 1


async def test_a_run_that_was_cut_in_a_tool_is_resumed_by_hand_and_told_so(
    scene: InterruptedJob,
) -> None:
    batch = await scene.start(scene.batch())
    await scene.in_its_tool()
    batch.send_signal(signal.SIGKILL)
    await scene.is_gone(batch)
    ask = await scene.start(scene.batch("--retry-from", "ask"))
    assert await scene.ends(ask) == 3
    run = str(scene.result()["id"])
    resumed = await scene.start([*COMMAND, "resume", run, "--store", str(scene.store)])
    assert await scene.ends(resumed) == 0
    assert len(set(scene.notices())) == 1
    assert scene.pushed() == ["pushed", "again"]


@pytest.mark.parametrize("program", AGENTS[len(CLAUDE) :], indirect=True, ids="-".join)
async def test_a_job_of_codex_exec_that_is_killed_in_a_tool_is_resumed_too(
    scene: InterruptedJob,
) -> None:
    scene.write({**scene.job, "options": {"exec": True}})
    assert await scene.ends(await kill_batch(scene)) == 0
    result = scene.result()
    assert (result["status"], result["attempt"], result["text"]) == ("completed", 2, "went on")
    assert scene.pushed() == ["pushed", "again"]
