"""A run or a job that can never succeed is refused before its start, and nothing is stored."""

from pathlib import Path

import pytest

from tests.cli.command_terminal import CommandTerminal

PREFIX = "sessionmgr: error: "
NEEDS_A_SHELL = (
    "needs a shell, but this prompt runs without one: set the option shell (--option shell=true), "
    "or quote it to pass it to the program literally"
)
REFUSED = {
    "'unclosed": "prompt: a single quote is not closed",
    "echo a; sleep 1 && b > x": f"prompt: the unquoted ; {NEEDS_A_SHELL}",
    "ls *.py": f"prompt: the unquoted * {NEEDS_A_SHELL}",
    "echo a\necho b": f"prompt: a line break between commands {NEEDS_A_SHELL}",
    "echo a\0b": "prompt: contains a NUL character; remove it",
}


@pytest.mark.parametrize("prompt", REFUSED)
def test_a_prompt_that_is_no_command_starts_no_run(terminal: CommandTerminal, prompt: str) -> None:
    Path("prompt.txt").write_text(prompt)
    expected = PREFIX + REFUSED[prompt]
    assert terminal("run", "-p", "shell", "--prompt-file", "prompt.txt") == (1, "", expected)
    assert terminal("sessions", "--json") == (0, "", "")


def test_a_shell_reads_it_where_the_option_says_so(terminal: CommandTerminal) -> None:
    code, out, _ = terminal("run", "-p", "shell", "--option", "shell=true", "echo a; echo b")
    assert (code, out) == (0, "a\nb")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--tools-allowed", "Reed"), "tools_allowed: unknown tool 'Reed'; did you mean 'Read'?"),
        (("--effort", "extreme"), "effort: unknown level 'extreme'; known: low, medium"),
        (
            ("--schema", "s.json"),
            'schema: not a valid JSON Schema: at /type, "objekt" is not allowed (types are array',
        ),
    ],
)
def test_a_wish_that_no_agent_could_be_given_starts_no_run(
    terminal: CommandTerminal, flags: tuple[str, ...], said: str
) -> None:
    Path("s.json").write_text('{"type": "objekt"}')
    code, _, err = terminal("run", "-p", "claude", *flags, "hi")
    assert code == 1
    assert err.startswith(PREFIX + said)


@pytest.mark.parametrize("words", [("run",), ("batch", "--dry-run"), ("batch",)])
def test_an_agent_that_is_not_installed_or_not_logged_in_is_refused(
    terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    Path("jobs.jsonl").write_text('{"id": "a", "prompt": "hi"}\n{"id": "b", "prompt": "hi"}\n')
    which = ("jobs.jsonl", "-o", "out") if words[0] == "batch" else ("hi",)
    monkeypatch.setenv("PATH", str(terminal.home / "bin"))
    monkeypatch.setenv("CODEX_HOME", str(terminal.home))
    code, out, err = terminal(*words, *which, "-p", "codex")
    assert (code, out) == (1, "")
    assert err.splitlines()[0].startswith(f"{PREFIX}codex: program 'codex' not found on PATH; ")
    agent = terminal.home / "bin" / "codex"
    agent.parent.mkdir()
    agent.write_text("#!/bin/sh\ntouch started\n")
    agent.chmod(0o755)
    code, out, err = terminal(*words, *which, "-p", "codex")
    assert (code, out) == (1, "")
    assert err.splitlines()[0].startswith(f"{PREFIX}codex: Codex is not logged in; run `codex log")
    assert len(err.splitlines()) == 1
    assert not Path("started").exists()
