"""A batch on Claude Code and Codex at once, by `sessionmgr batch`; their programs are killed."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from sessionmgr.model import Json
from sessionmgr.store import open_sqlite_store
from sessionmgr.testing.laws import broken_laws
from sessionmgr.testing.model_server import Call, Hang, ModelServer, Say, Script, prompt_with
from sessionmgr.testing.model_server.hermetic import Hermitage
from tests.cli.command import COMMAND, environment
from tests.real.agents import CLAUDE, CODEX, program_of
from tests.real.house import until, with_word

PROVIDERS = ("claude", "codex")
EACH = 3
PATIENCE = 120.0


@pytest.fixture
def env(hermitage: Hermitage) -> dict[str, str]:
    programs = (program_of("claude", CLAUDE[0]), program_of("codex", CODEX[0]))
    path = os.pathsep.join([*(str(each.parent) for each in programs), os.environ["PATH"]])
    said = {**hermitage.claude(), **hermitage.codex(), "IS_SANDBOX": "1", "PATH": path}
    return environment(hermitage.home, **{**said, "HOME": str(hermitage.home)})


def job(hermitage: Hermitage, provider: str, name: str, script: Script) -> dict[str, Json]:
    place = hermitage.root / name
    place.mkdir()
    return {
        "id": name,
        "provider": provider,
        "prompt": prompt_with(script),
        "permission_mode": "full_auto",
        "cwd": str(place),
    }


def agents_of(hermitage: Hermitage) -> Iterator[int]:
    """Return the Claude Code that has the job that is killed, and the app-server of all others."""
    for pid in with_word(str(hermitage.root)):
        place = Path(f"/proc/{pid}")
        try:
            line, work = (place / "cmdline").read_bytes(), (place / "cwd").readlink()
        except OSError:
            continue
        if b"\0app-server\0" in line or (work.name == "claude-killed" and b"--print" in line):
            yield pid


async def test_each_job_ends_once_although_its_program_is_killed(
    server: ModelServer, hermitage: Hermitage, env: dict[str, str]
) -> None:
    jobs: list[dict[str, Json]] = []
    for provider in PROVIDERS:
        for number in range(EACH):
            name = f"{provider}-{number}"
            shell = Call(tool="shell", input={"command": f"echo {name}"})
            script: Script = [[shell], [Say(text=f"done {name}", deltas=3)]]
            jobs.append(job(hermitage, provider, name, script))
        name = f"{provider}-killed"
        shell = Call(tool="shell", input={"command": f"echo {name} is here"})
        hangs: Script = [[shell], [Say(text="So"), Hang(times=1), Say(text=f"done {name}")]]
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
        killed = list(agents_of(hermitage))
        assert len(killed) == len(PROVIDERS)
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        with trio.fail_after(PATIENCE):
            code = await batch.wait()
    finally:
        batch.kill()
    results = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    assert sorted(each["job"] for each in results) == sorted(str(each["id"]) for each in jobs)
    ends = {each["job"]: each["status"] for each in results}
    assert set(ends.values()) == {"completed"}, results
    assert code == 0
    attempts = {each["job"]: each["attempt"] for each in results}
    assert all(attempts[f"{each}-killed"] == 2 for each in PROVIDERS), attempts
    texts = {name: each["text"] for each in results if "killed" not in (name := each["job"])}
    assert texts == {name: f"done {name}" for name in texts}
    async with open_sqlite_store(store) as kept:
        assert await broken_laws(kept) == []


def is_asked(server: ModelServer, words: str) -> bool:
    """Whether the model was told these words by a tool."""
    told = [result.text for each in server.log.asked for result in each.results]
    return any(words in each for each in told)
