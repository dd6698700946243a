"""The verb `rehearse` without an agent; tests/real covers the rest."""

import json
from collections.abc import Mapping

from tests.cli.command_terminal import CommandTerminal


def jobs(terminal: CommandTerminal, *found: Mapping[str, object]) -> str:
    file = terminal.home / "jobs.jsonl"
    file.write_text("".join(f"{json.dumps(each)}\n" for each in found))
    return str(file)


def test_an_agent_that_is_not_there_is_named_before_anything_starts(
    terminal: CommandTerminal,
) -> None:
    program = ["no-such-program"]
    job = {"id": "a", "provider": "claude", "prompt": "hi", "options": {"command": program}}
    code, out, err = terminal.bare("rehearse", jobs(terminal, job))
    assert (code, out) == (1, "")
    assert "claude: program 'no-such-program' not found on PATH; install Claude Code" in err
    assert list(terminal.home.rglob("*.db")) == []


def test_a_rehearsal_needs_no_login(terminal: CommandTerminal) -> None:
    agent = terminal.home / "bin" / "codex"
    agent.parent.mkdir()
    agent.write_text("#!/bin/sh\nexit 7\n")
    agent.chmod(0o755)
    options = {"command": [str(agent)], "model_provider": "openai"}
    job = {"id": "a", "provider": "codex", "prompt": "hi", "options": options}
    code, _, err = terminal.bare("rehearse", jobs(terminal, job))
    assert code == 3
    assert "exit code 7" in err


def test_results_are_written_where_that_is_wanted(terminal: CommandTerminal) -> None:
    job = {"id": "a", "provider": "claude", "prompt": "hi"}
    option = 'command=["/bin/sh", "-c", "exit 7"]'
    words = ("rehearse", jobs(terminal, job), "-q", "-p", "claude", "--option", option)
    out = terminal.home / "out"
    code, _, err = terminal.bare(*words, "-o", str(out))
    assert code == 3
    assert "played" not in err
    [line] = (out / "results.jsonl").read_text().splitlines()
    assert json.loads(line)["failure"]["exit_code"] == 7


def test_a_rehearsal_and_a_batch_never_share_a_directory(terminal: CommandTerminal) -> None:
    job = {"id": "a", "provider": "shell", "prompt": "echo hi", "permission_mode": "full_auto"}
    real = terminal.home / "real"
    file = jobs(terminal, job)
    assert terminal.bare("batch", file, "-q", "-o", str(real))[0] == 0
    before = (real / "results.jsonl").read_bytes()
    file = jobs(terminal, {"id": "a", "provider": "claude", "prompt": "hi"})
    words = ("-q", "-p", "claude", "--option", 'command=["/bin/sh", "-c", "exit 7"]')
    code, _, err = terminal.bare("rehearse", file, *words, "-o", str(real))
    assert code == 1
    assert f"--out {real}: it contains a real batch" in err
    assert (real / "results.jsonl").read_bytes() == before
    played = terminal.home / "played"
    for _ in range(2):  # it may be rehearsed again
        assert terminal.bare("rehearse", file, *words, "-o", str(played))[0] == 3
    code, _, err = terminal.bare("batch", file, "-q", "-p", "claude", "-o", str(played))
    assert code == 1
    assert f"--out {played}: it contains a rehearsal" in err


def test_jobs_that_cannot_be_rehearsed_are_named_before_anything_starts(
    terminal: CommandTerminal,
) -> None:
    file = jobs(terminal, {"id": "a", "provider": "shell", "prompt": "ls"})
    code, out, err = terminal.bare("rehearse", file)
    assert (code, out) == (1, "")
    assert err.endswith(
        f"{file}:1: provider: shell cannot be rehearsed; providers that can: claude, codex"
    )
    file = jobs(terminal, {"id": "a", "provider": "claude"})
    code, _, err = terminal.bare("rehearse", file)
    assert code == 1
    assert err.endswith(f'{file}:1: missing "prompt" (or "prompt_file")')
