"""What can never go well is refused before a run or a job is started, and nothing is stored."""

from pathlib import Path

import pytest

from tests.cli.terminal import Terminal

PREFIX = "sessionmgr: error: "
NEEDS_A_SHELL = (
    "needs a shell, and none reads this prompt: set the option shell (--option shell=true), "
    "or quote it so that the program gets it as it is"
)
REFUSED = {
    "'unclosed": "prompt: a single quote is not closed",
    "echo a; sleep 1 && b > x": f"prompt: the unquoted ; {NEEDS_A_SHELL}",
    "ls *.py": f"prompt: the unquoted * {NEEDS_A_SHELL}",
    "echo a\necho b": f"prompt: a line break between commands {NEEDS_A_SHELL}",
    "echo a\0b": "prompt: it holds a NUL",
}


@pytest.mark.parametrize("prompt", REFUSED)
def test_a_prompt_that_is_no_command_starts_no_run(terminal: Terminal, prompt: str) -> None:
    Path("prompt.txt").write_text(prompt)
    expected = PREFIX + REFUSED[prompt]
    assert terminal("run", "-p", "shell", "--prompt-file", "prompt.txt") == (1, "", expected)
    assert terminal("sessions", "--json") == (0, "", "")


def test_a_shell_reads_it_where_the_option_says_so(terminal: Terminal) -> None:
    code, out, _ = terminal("run", "-p", "shell", "--option", "shell=true", "echo a; echo b")
    assert (code, out) == (0, "a\nb")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--tools-allowed", "Reed"), "tools_allowed: unknown tool 'Reed'; did you mean 'Read'?"),
        (("--effort", "extreme"), "effort: unknown level 'extreme'; Claude Code has low, medium"),
        (("--schema", "s.json"), "schema: it is no JSON Schema: "),
    ],
)
def test_a_wish_that_no_agent_could_be_given_starts_no_run(
    terminal: Terminal, flags: tuple[str, ...], said: str
) -> None:
    Path("s.json").write_text('{"type": "objekt"}')
    code, _, err = terminal("run", "-p", "claude", *flags, "hi")
    assert code == 1
    assert err.startswith(PREFIX + said)
