"""Results of real agents stay until `sessionmgr batch` has run their job again."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import trio

from sessionmgr.testing.model_server import ModelSay, ModelServer, open_model_server, prompt_with
from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment
from tests.cli.command import COMMAND, environment
from tests.real.agent_programs import CLAUDE, CODEX, program_of
from tests.real.harness import PATIENCE

JOBS = ("claude-a", "claude-b", "codex-a", "codex-b")


@pytest.fixture
async def server() -> AsyncGenerator[ModelServer]:
    async with open_model_server() as server:
        yield server
    assert server.log.strangers == []


@pytest.fixture
def env(hermitage: IsolatedEnvironment) -> dict[str, str]:
    programs = (program_of("claude", CLAUDE[0]), program_of("codex", CODEX[0]))
    path = os.pathsep.join([*(str(each.parent) for each in programs), os.environ["PATH"]])
    said = {**hermitage.claude(), **hermitage.codex(), "IS_SANDBOX": "1", "PATH": path}
    return environment(hermitage.home, **{**said, "HOME": str(hermitage.home)})


def write_jobs(file: Path, words: dict[str, str]) -> None:
    jobs = [
        {
            "id": name,
            "provider": name.split("-")[0],
            "prompt": prompt_with([[ModelSay(text=words[name])]]),
            "permission_mode": "full_auto",
        }
        for name in JOBS
    ]
    file.write_text("".join(f"{json.dumps(each)}\n" for each in jobs))


def lines_in(out: Path) -> dict[str, bytes]:
    lines = (out / "results.jsonl").read_bytes().splitlines()
    found = {json.loads(line)["job"]: line for line in lines}
    assert len(found) == len(lines)
    return found


async def test_only_what_is_selected_is_run_again(
    server: ModelServer, hermitage: IsolatedEnvironment, env: dict[str, str]
) -> None:
    file, out = hermitage.root / "jobs.jsonl", hermitage.root / "out"

    async def batch(*flags: str) -> tuple[int, str]:
        said = ["-o", str(out), "--store", str(hermitage.root / "runs.db"), "-qn1", *flags]
        with trio.fail_after(PATIENCE):
            ended = await trio.run_process(
                [*COMMAND, "batch", str(file), *said],
                env=env,
                cwd=hermitage.root,
                capture_stdout=True,
                capture_stderr=True,
                check=False,
            )
        return ended.returncode, ended.stderr.decode()

    first = {name: f"first {name}" for name in JOBS}
    write_jobs(file, first)
    assert await batch() == (0, "")
    before = lines_in(out)
    assert {name: json.loads(line)["text"] for name, line in before.items()} == first

    write_jobs(file, {**first, "claude-b": "second claude-b", "codex-b": "second codex-b"})
    assert await batch("--deadline", "600", "--only", "claude-b", "--force") == (0, "")
    after = lines_in(out)
    assert {name for name in JOBS if after[name] != before[name]} == {"claude-b"}
    again = json.loads(after["claude-b"])
    assert (again["text"], again["attempt"], again["resumed_from"]) == ("second claude-b", 2, None)

    code, said = await batch("--deadline", "600")
    assert code == 1
    assert "job 'codex-b' has changed since it was run" in said
    assert "--force --only codex-b" in said
    assert lines_in(out) == after
    assert await batch("--deadline", "600", "--only", "codex-b", "--force") == (0, "")
    assert json.loads(lines_in(out)["codex-b"])["text"] == "second codex-b"

    last, asked = lines_in(out), len(server.log.asked)
    assert await batch("--deadline", "900") == (0, "")
    assert (lines_in(out), len(server.log.asked)) == (last, asked)
