"""Follow-ups from the command line of finished jobs of real agents."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from subprocess import PIPE, CompletedProcess

import pytest
import trio

from sessionmgr.model import Json
from sessionmgr.store import open_sqlite_store
from sessionmgr.testing.invariants import broken_laws
from sessionmgr.testing.model_server import (
    ModelCall,
    ModelHang,
    ModelRefuse,
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
from tests.real.harness import PATIENCE, line_of, roots, until, with_word
from tests.real.test_mixed_batch import results_in

PROVIDERS = ("claude", "codex")
MESSAGE = "the test still fails: fix it"


def fixed(request: ModelRequest) -> ModelReply | None:
    """Answer a follow-up, and report whether the earlier conversation is known."""
    if MESSAGE not in request.prompt:
        return None
    known = "word-of-the-job" in str(request.items)
    return (ModelSay(text=f"fixed, and the job is {'known' if known else 'unknown'}"),)


@pytest.fixture
async def server() -> AsyncGenerator[ModelServer]:
    async with open_model_server(fixed) as server:
        yield server
    assert server.log.strangers == []


@pytest.fixture
def env(hermitage: IsolatedEnvironment) -> dict[str, str]:
    programs = (program_of("claude", CLAUDE[0]), program_of("codex", CODEX[0]))
    path = os.pathsep.join([*(str(each.parent) for each in programs), os.environ["PATH"]])
    said = {**hermitage.claude(retries=1), **hermitage.codex(), "IS_SANDBOX": "1", "PATH": path}
    return environment(hermitage.home, **{**said, "HOME": str(hermitage.home)})


def jobs_of(hermitage: IsolatedEnvironment) -> dict[str, dict[str, Json]]:
    """Return a job that completes, one that fails and one interrupted in a tool, for each agent."""
    shell = ModelCall(tool="shell", input={"command": "echo word-of-the-job"})
    sleeps = ModelCall(
        tool="shell",
        input={"command": "touch begun; until [ -e word-of-the-job ]; do sleep 1; done"},
    )
    scripts: dict[str, ModelScript] = {
        "completed": [[shell], [ModelSay(text="done")]],
        "failed": [[shell], [ModelRefuse(status=400)]],
        "timed_out": [[sleeps], [ModelSay(text="So"), ModelHang()]],  # Codex does not wait for it
    }
    jobs: dict[str, dict[str, Json]] = {}
    for provider in PROVIDERS:
        for status, script in scripts.items():
            name = f"{provider}-{status}"
            (hermitage.root / name).mkdir()
            jobs[name] = {
                "id": name,
                "provider": provider,
                "prompt": prompt_with(script),
                "permission_mode": "full_auto",
                "cwd": str(hermitage.root / name),
                "deadline": 60 if status == "timed_out" else 200,
            }
    return jobs


async def sessionmgr(
    hermitage: IsolatedEnvironment, env: dict[str, str], *words: str
) -> CompletedProcess[bytes]:
    store = ["--store", str(hermitage.root / "runs.db")]
    with trio.fail_after(PATIENCE):
        return await trio.run_process(
            [*COMMAND, *words, *store],
            env=env,
            cwd=hermitage.root,
            check=False,
            capture_stdout=True,
            capture_stderr=True,
        )


async def test_jobs_are_followed_up_in_their_agents_session_however_they_ended(
    server: ModelServer, hermitage: IsolatedEnvironment, env: dict[str, str]
) -> None:
    jobs, out = jobs_of(hermitage), hermitage.root / "out"
    file = hermitage.root / "jobs.jsonl"
    file.write_text("".join(f"{json.dumps(each)}\n" for each in jobs.values()))
    flags = ["-o", str(out), "-n", str(len(jobs)), "--retries", "0", "-q"]
    ran = await sessionmgr(hermitage, env, "batch", str(file), *flags)
    results = {each["job"]: each for each in results_in(out)}
    for name in jobs:
        assert results[name]["status"] == name.partition("-")[2], (results, ran.stderr.decode())
    assert all((hermitage.root / f"{each}-timed_out" / "begun").exists() for each in PROVIDERS)
    lines = (out / "results.jsonl").read_bytes()
    for name in jobs:
        said = await sessionmgr(hermitage, env, "resume", name, MESSAGE, "--deadline", "200")
        assert said.returncode == 0, said.stderr.decode()
        assert said.stdout.decode().strip() == "fixed, and the job is known"
    assert (out / "results.jsonl").read_bytes() == lines
    async with open_sqlite_store(hermitage.root / "runs.db") as kept:
        assert await broken_laws(kept) == []
        page = await kept.runs()
        assert len(page.rows) == 2 * len(jobs)
        events = [
            json.loads(row.body)
            for run in page.rows
            for row in (await kept.events(run.session_id, run_id=run.run_id)).rows
        ]
    started = {each["run_id"]: each for each in events if each["type"] == "run_started"}
    follow_ups = [each for each in started.values() if each["resumed_from"] is not None]
    assert len(follow_ups) == len(jobs)
    for each in follow_ups:
        before = started[each["resumed_from"]]
        for field in ("provider_session_id", "cwd", "permission", "model"):
            assert each[field] == before[field]


async def test_a_session_that_the_agent_has_lost_is_named_with_the_agents_own_command(
    server: ModelServer, hermitage: IsolatedEnvironment, env: dict[str, str]
) -> None:
    prompt = prompt_with([[ModelSay(text="done")]])
    said = await sessionmgr(hermitage, env, "run", "-p", "claude", prompt, "--json")
    events = [json.loads(each) for each in said.stdout.splitlines()]
    started = next(each for each in events if each["type"] == "run_started")
    for each in hermitage.root.glob(f"**/{started['provider_session_id']}.jsonl"):
        each.unlink()
    said = await sessionmgr(hermitage, env, "resume", started["run_id"], MESSAGE)
    assert said.returncode == 3
    err = said.stderr.decode()
    assert f"Claude Code no longer has the session {started['provider_session_id']}" in err
    assert f"claude --resume {started['provider_session_id']}" in err


async def test_a_batch_keeps_no_agent_of_a_job_that_is_over(
    server: ModelServer, hermitage: IsolatedEnvironment, env: dict[str, str]
) -> None:
    file, out = hermitage.root / "jobs.jsonl", hermitage.root / "out"
    gates = [hermitage.root / f"gate{number}" for number in range(7)]
    lines: list[dict[str, Json]] = [
        {"id": gate.name, "provider": "claude", "prompt": prompt_with(waits_for(gate))}
        for gate in gates
    ]
    file.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    words = ["batch", str(file), "-o", str(out), "-n", "1", "-q"]
    store = ["--store", str(hermitage.root / "runs.db")]
    batch = await trio.lowlevel.open_process(
        [*COMMAND, *words, *store], env=env, cwd=hermitage.root, stdin=PIPE
    )
    try:
        with trio.fail_after(PATIENCE):
            for gate in gates:
                await until(partial(is_asked, server, str(gate)))
                await until(lambda: len(claudes(hermitage)) == 1)  # the last one's exits
                gate.touch()
            assert await batch.wait() == 0
    finally:
        batch.kill()


def waits_for(gate: Path) -> ModelScript:
    """Return a script that pauses in a text until a file exists."""
    return [[ModelSay(text="done", deltas=2, until=str(gate))]]


def is_asked(server: ModelServer, words: str) -> bool:
    """Whether a request to the model contained these words."""
    return any(words in each.prompt for each in server.log.asked)


def claudes(hermitage: IsolatedEnvironment) -> list[int]:
    """Return the Claude Code processes that work there."""
    return roots(pid for pid in with_word(str(hermitage.root)) if b"\0--print\0" in line_of(pid))
