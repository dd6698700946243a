"""Real shells run the lines that rules allow, and none of them starts a denied program."""

import os
import select
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from sessionmgr.adapter import ApprovalRequest
from sessionmgr.batch.rules import Rule, Rules
from tests.batch.test_rules_bypass import allows

DENYING = Rules((Rule(decision="deny", command="zap"), Rule(decision="allow", tool="Bash")))
ALLOWING = Rules((Rule(decision="allow", command="ok one"),))
SHELLS = [shell for shell in ("sh", "bash", "dash", "zsh", "ksh") if shutil.which(shell)]
PROGRAMS = (
    "env",
    "true",
    "nice",
    "nohup",
    "timeout",
    "xargs",
    "find",
    "sh",
    "cat",
    "sort",
    "printf",
)

WORDS = [
    "zap", "zap", "env zap", "nice zap", "sh -c zap", "echo | xargs zap", "timeout 9 zap",
    "'zap'", "z''ap", "../bin/zap", "ok one", "ok", "echo", "env", "nice", "xargs", "find . -exec",
    "sh -c", "timeout 1",
    "eval", "command", "exec", "X=1", "if", "then", "fi", "for x in a", "do", "done", "case x in",
    "!",
    "{", "}", "(", ")", "[[", "]]", "test", "f()", "alias f=zap", "trap", "EXIT", "printf -v",
    "a[$(zap)]", "set --", "$@", ".", "<<E", "E", "cat", "sort", "hash", "true",
]  # fmt: skip
JOINTS = [
    *[" "] * 12, "\n", ";", "&", "&&", "||", "|", "|&", "'", '"', "\\", "`", "$(", ")", "${", "{",
    "}",
    ",", "*", "?", "[", "]", "#", ">", "<", ">&", "2>", "&>", "\\\n", "\t", "=", "-", "--", "./",
    "$'",
    "\r", "\x0b", "\u00a0", "'\\''", "((", "%", "^",
]  # fmt: skip
BEGINNINGS = ["ok one ", "ok ", "echo ", ""]
PIECES = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(JOINTS)), max_size=5)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which `bin` contains all programs, and `zap` records its start."""
    place = tmp_path_factory.mktemp("shells")
    (place / "bin").mkdir()
    for name, text in (("zap", f"echo x >> '{place}/started'"), ("ok", "exit 0")):
        (place / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (place / "bin" / name).chmod(0o755)
    for name in PROGRAMS:
        if found := shutil.which(name):
            (place / "bin" / name).symlink_to(found)
    return place


def starts_it(place: Path, shell: str, line: str) -> bool:
    """Run a line, and return whether the denied program started, perhaps in the background."""
    work = place / "work"
    work.mkdir()
    until_all_end, held = os.pipe()
    try:
        try:
            subprocess.run(
                [str(shutil.which(shell)), "-c", line],
                cwd=work,
                env={"PATH": str(place / "bin")},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=60,
                pass_fds=[held],
            )
        finally:
            os.close(held)
        ended, _, _ = select.select([until_all_end], [], [], 60)
        assert ended, "something of it still runs in the background"
        return (place / "started").exists()
    finally:
        os.close(until_all_end)
        shutil.rmtree(work)
        (place / "started").unlink(missing_ok=True)


LATE = "for n in {}; do env true; done; zap".format("x " * 30)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("line", ["echo x; env zap", f"{{ {LATE}; }} > out 2>&1 &"])
def test_the_denied_program_is_noticed_where_it_starts(place: Path, shell: str, line: str) -> None:
    assert starts_it(place, shell, line)


@given(begin=st.sampled_from(BEGINNINGS), pieces=PIECES)
def test_no_allowed_line_starts_a_denied_command(
    place: Path, begin: str, pieces: list[tuple[str, str]]
) -> None:
    line = begin + "".join(word + joint for word, joint in pieces)
    asked = ApprovalRequest(
        tool_name="Bash", tool_input={"command": line}, effect="command", cwd="/work"
    )
    if "zap" in line and (allows(DENYING, asked) or allows(ALLOWING, asked)):
        assert not [shell for shell in SHELLS if starts_it(place, shell, line)], line
