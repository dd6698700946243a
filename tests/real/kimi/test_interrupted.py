"""A job of Kimi that is interrupted inside a tool is resumed with a notice, and repeats nothing."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

import pytest
import trio

from sessionmgr.model import Json
from sessionmgr.store import open_sqlite_store
from sessionmgr.testing.invariants import broken_laws
from sessionmgr.testing.model_server import (
    ModelCall,
    ModelSay,
    ModelScript,
    ModelServer,
    open_model_server,
    prompt_with,
)
from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment
from tests.cli.command import environment
from tests.real.kimi.harness import kimi_environment, kimi_pids
from tests.real.test_interrupted import (
    InterruptedJob,
    forget_sessions,
    kill_batch,
    kill_host,
    reboot,
    went_on,
)


@pytest.fixture
async def server() -> AsyncGenerator[ModelServer]:
    async with open_model_server(went_on) as server:
        yield server
    assert server.log.strangers == []


@pytest.fixture
async def scene(
    kimi_program: Path, server: ModelServer, hermitage: IsolatedEnvironment
) -> AsyncGenerator[InterruptedJob]:
    said = kimi_environment(hermitage)
    path = os.pathsep.join([str(kimi_program.parent), os.environ["PATH"]])
    env = environment(hermitage.home, **{**said, "PATH": path})
    work = hermitage.root / "job"
    work.mkdir()
    scene = InterruptedJob("kimi", server, hermitage.root, work, env)
    cut = "echo again >> done; touch began; sleep 1000"
    script: ModelScript = [
        [ModelCall(tool="shell", input={"command": "echo pushed >> done"})],
        [ModelCall(tool="shell", input={"command": cut, "timeout": 300})],
        [ModelSay(text="never said")],
    ]
    job: dict[str, Json] = {
        "id": "a",
        "provider": "kimi",
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


async def kill_agent(scene: InterruptedJob) -> trio.Process:
    """Kill Kimi itself; the batch tries again."""
    batch = await scene.start(scene.batch())
    await scene.in_its_tool()
    [agent] = kimi_pids(scene.work)
    os.kill(agent, signal.SIGKILL)
    return batch


@pytest.mark.parametrize(
    "cut", [kill_batch, kill_host, kill_agent, reboot], ids=lambda each: each.__name__
)
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
    assert "(Shell). Its outcome is unknown" in notices.pop()
    async with open_sqlite_store(scene.store) as store:
        assert await broken_laws(store) == []


async def test_a_job_whose_session_is_lost_is_not_started_over_unasked(
    scene: InterruptedJob,
) -> None:
    batch = await scene.start(scene.batch())
    await scene.in_its_tool()
    batch.send_signal(signal.SIGKILL)
    await scene.is_gone(batch)
    forget_sessions(scene)
    assert await scene.ends(await scene.start(scene.batch())) == 3
    failure = scene.result()["failure"]
    assert isinstance(failure, dict)
    assert failure["kind"] == "session_not_found"
    assert scene.pushed() == ["pushed", "again"]
