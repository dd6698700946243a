"""A batch on Claude Code and Codex at once, by `sessionmgr batch`; their programs are killed."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from sessionmgr.model import Json
from sessionmgr.store import open_sqlite_store
from sessionmgr.testing.invariants import broken_laws
from sessionmgr.testing.model_server import (
    ModelCall,
    ModelHang,
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
from tests.real.harness import PATIENCE, is_kept, roots, until, with_word

PROVIDERS = ("claude", "codex")
EACH = 3


def went_on(request: ModelRequest) -> ModelReply | None:
    """Answer an agent that continues. How much of its script it still has depends on the kill."""
    return (ModelSay(text="went on"),) if request.prompt == "continue" else None


@pytest.fixture
async def server() -> AsyncGenerator[ModelServer]:
    async with open_model_server(went_on) as server:
        yield server
    assert server.log.strangers == []


@pytest.fixture
def env(hermitage: IsolatedEnvironment) -> dict[str, str]:
    programs = (program_of("claude", CLAUDE[0]), program_of("codex", CODEX[0]))
    path = os.pathsep.join([*(str(each.parent) for each in programs), os.environ["PATH"]])
    said = {**hermitage.claude(), **hermitage.codex(), "IS_SANDBOX": "1", "PATH": path}
    return environment(hermitage.home, **{**said, "HOME": str(hermitage.home)})


def job(
    hermitage: IsolatedEnvironment, provider: str, name: str, script: ModelScript
) -> dict[str, Json]:
    place = hermitage.root / name
    place.mkdir()
    return {
        "id": name,
        "provider": provider,
        "prompt": prompt_with(script),
        "permission_mode": "full_auto",
        "cwd": str(place),
    }


def agents_of(hermitage: IsolatedEnvironment) -> Iterator[int]:
    """Yield the Claude Code of the job to kill, and the app-server of all others."""
    for pid in with_word(str(hermitage.root)):
        place = Path(f"/proc/{pid}")
        try:
            line, work = (place / "cmdline").read_bytes(), (place / "cwd").readlink()
        except OSError:
            continue
        if b"\0app-server\0" in line or (work.name == "claude-killed" and b"--print" in line):
            yield pid


async def test_each_job_ends_once_although_its_program_is_killed(
    server: ModelServer, hermitage: IsolatedEnvironment, env: dict[str, str]
) -> None:
    jobs: list[dict[str, Json]] = []
    for provider in PROVIDERS:
        for number in range(EACH):
            name = f"{provider}-{number}"
            shell = ModelCall(tool="shell", input={"command": f"echo {name}"})
            script: ModelScript = [[shell], [ModelSay(text=f"done {name}", deltas=3)]]
            jobs.append(job(hermitage, provider, name, script))
        name = f"{provider}-killed"
        shell = ModelCall(tool="shell", input={"command": f"echo {name} is here"})
        hangs: ModelScript = [[shell], [ModelSay(text="So"), ModelHang()]]
        jobs.append(job(hermitage, provider, name, hangs))
    file, out, store = (hermitage.root / each for each in ("jobs.jsonl", "out", "runs.db"))
    file.write_text("".join(f"{json.dumps(each)}\n" for each in jobs))
    flags = [
        "-o",
        str(out),
        "-n",
        str(len(jobs)),
        "--store",
        str(store),
        "-q",
        "--retry-on",
        "killed_by_os",
    ]
    batch = await trio.lowlevel.open_process(
        [*COMMAND, "batch", str(file), *flags], env=env, cwd=hermitage.root
    )
    try:
        await until(lambda: all(is_asked(server, f"{each}-killed is here") for each in PROVIDERS))
        await until(
            lambda: all(is_kept(hermitage.root, f"{each}-killed is here") for each in PROVIDERS)
        )
        await until(lambda: len(results_in(out)) == len(jobs) - len(PROVIDERS))
        killed = roots(agents_of(hermitage))
        assert len(killed) == len(PROVIDERS)
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        with trio.fail_after(PATIENCE):
            code = await batch.wait()
    finally:
        batch.kill()
    ends = sorted((each["job"], each["status"], each["attempt"]) for each in results_in(out))
    wanted = (
        (str(each["id"]), "completed", 2 if "killed" in str(each["id"]) else 1) for each in jobs
    )
    assert ends == sorted(wanted)
    assert code == 0
    said = {each["job"]: each["text"] for each in results_in(out)}
    assert said == {name: "went on" if "killed" in name else f"done {name}" for name in said}
    async with open_sqlite_store(store) as kept:
        assert await broken_laws(kept) == []


def results_in(out: Path) -> list[dict[str, Any]]:
    """Return the results so far."""
    file = out / "results.jsonl"
    lines = file.read_text().splitlines(keepends=True) if file.exists() else []
    return [json.loads(each) for each in lines if each.endswith("\n")]  # the last may be incomplete


def is_asked(server: ModelServer, words: str) -> bool:
    """Whether a tool has returned these words to the model."""
    told = [result.text for each in server.log.asked for result in each.results]
    return any(words in each for each in told)
