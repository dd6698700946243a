"""Shells complete commands, flags and providers."""

import shutil
import subprocess

import pytest

from sessionmgr.adapter.discovery import installed_adapters
from sessionmgr.cli.verb_table import VERBS
from tests.cli.command_terminal import CommandTerminal


def completed(terminal: CommandTerminal, *words: str) -> list[str]:
    """Return what bash offers for the last of these words."""
    code, script, err = terminal.bare("completion", "bash")
    assert (code, err) == (0, "")
    quoted = " ".join(f"'{word}'" for word in ("sessionmgr", *words))
    asked = f"COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _sessionmgr"
    ran = subprocess.run(
        [
            "bash",
            "-euc",
            f"{script}\ncomplete -p sessionmgr >&2\n{asked}\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"",
        ],
        capture_output=True,
        encoding="utf-8",
        check=False,
        cwd=terminal.home,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == "complete -o filenames -F _sessionmgr sessionmgr\n"
    return ran.stdout.splitlines()


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_completes_commands_flags_and_providers(terminal: CommandTerminal) -> None:
    assert completed(terminal, "") == list(VERBS)
    assert completed(terminal, "se") == ["sessions"]
    assert completed(terminal, "--json", "--store", "show", "ev") == ["events"]
    assert completed(terminal, "sessions", "--st") == ["--status", "--store"]
    assert completed(terminal, "sessions", "-p", "") == installed_adapters()
    assert completed(terminal, "run", "--permission", "pl") == ["plan"]
    assert completed(terminal, "schema", "o") == ["options", "output"]
    assert completed(terminal, "approve", "run_1", "al") == ["allow"]
    assert completed(terminal, "schema", "options", "") == installed_adapters()


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_completes_files_where_nothing_else_would_do(terminal: CommandTerminal) -> None:
    (terminal.home / "jobs.jsonl").touch()
    (terminal.home / "jobs of mine.jsonl").touch()
    both = ["jobs of mine.jsonl", "jobs.jsonl"]
    for words in (["--store"], ["batch"], ["run", "--schema"], ["batch", "-o"]):
        assert sorted(completed(terminal, *words, "jo")) == both
        assert set(both) <= set(completed(terminal, *words, ""))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_is_reported_all_commands_and_all_flags(
    terminal: CommandTerminal, shell: str
) -> None:
    code, out, err = terminal.bare("completion", shell)
    assert (code, err) == (0, "")
    for name in VERBS:
        assert name in out
    flag = "-l follow" if shell == "fish" else "--follow"
    assert flag in out
    if (program := shutil.which(shell)) is not None:
        subprocess.run([program, "-n"], input=out, encoding="utf-8", check=True, timeout=60)


def test_the_help_says_how_to_install_it(terminal: CommandTerminal) -> None:
    code, out, _ = terminal.bare("completion", "--help")
    assert code == 0
    assert "source <(sessionmgr completion bash)" in out
    assert "config/fish/completions" in out
