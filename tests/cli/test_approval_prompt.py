"""The approval prompt shows the whole input without deception; no answer is a denial."""

import os
import tty
from collections.abc import Generator

import pytest
import trio

from sessionmgr.adapter import Allow, ApprovalRequest, Deny
from sessionmgr.cli.terminal.approval_prompt import ApprovalPrompt, question_text
from sessionmgr.model import Json
from tests.cli.pipes import read_terminal


def asked(tool_input: Json, reason: str | None = None) -> str:
    request = ApprovalRequest(
        tool_name="Bash", tool_input=tool_input, provider="claude", reason=reason
    )
    return question_text(request, None, 0.0)


@pytest.mark.parametrize(
    ("tool_input", "shown"),
    [
        (None, []),
        ("one\ntwo", ["one", "two"]),
        ({"command": "a\nb", "timeout": 3}, ["command: a", "  b", "timeout: 3"]),
        ({"command": ""}, ["command: "]),
        ([1, 2], ["[1,2]"]),
        ("\x1b[2Krm\r-rf\u202e", ["^[[2Krm", "-rf\ufffd"]),
        ({"command": "ls \x1b]0;; rm x;\x07"}, ["command: ls ^[]0;; rm x;^G"]),
        ({"command": "ls \x9d; rm x;\x9c"}, ["command: ls \ufffd; rm x;\ufffd"]),
    ],
)
def test_all_of_the_input_is_shown(tool_input: Json, shown: list[str]) -> None:
    lines = asked(tool_input).splitlines()
    assert lines[1] == "? claude asks to use Bash"
    assert lines[2:-1] == [f"    {line}" for line in shown]


def test_of_a_very_long_input_it_is_said_how_much_is_left_out() -> None:
    lines = asked("\n".join(map(str, range(100)))).splitlines()
    assert lines[-2] == "    … and 60 more lines"


def test_what_would_be_run_is_shown_whole() -> None:
    script = "\n".join(f"echo {number}" for number in range(100))
    lines = asked({"content": script, "command": script, "cwd": "/w"}).splitlines()
    assert "      echo 99" in lines
    assert "    cwd: /w" in lines
    assert lines[-2] == "    … and 60 more lines"
    assert sum(line.endswith("echo 70") for line in lines) == 1


def test_why_it_is_asked_stands_below() -> None:
    assert "  because: it is\n" in asked(None, reason="it\nis")


@pytest.fixture
def terminal() -> Generator[tuple[int, int]]:
    ours, theirs = os.openpty()
    tty.setraw(theirs)
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


REQUEST = ApprovalRequest(tool_name="Bash", provider="claude")


async def test_a_terminal_that_is_not_ours_to_read_is_a_no(terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:

            async def answer() -> None:
                await trio.lowlevel.wait_readable(ours)  # the question
                os.write(ours, b"y\n")

            nursery.start_soon(answer)
            decision = await ApprovalPrompt(theirs, 120.0).approve(REQUEST)
    assert decision == Deny(reason="the terminal is closed", by="default")


def ours_to_read(fd: int) -> int:
    assert fd >= 0
    return os.getpgrp()


async def test_questions_are_asked_one_at_a_time_and_always_answers_the_next(
    terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = terminal
    monkeypatch.setattr(os, "tcgetpgrp", ours_to_read)
    person = ApprovalPrompt(theirs, 0.0)
    decisions: list[object] = []

    async def ask() -> None:
        decisions.append(await person.approve(REQUEST))

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            nursery.start_soon(ask)
            await trio.lowlevel.wait_readable(ours)
            os.write(ours, b"a\n")
    assert decisions == [Allow(reason="always")] * 2
    assert read_terminal(ours, theirs).count(b"asks to use") == 1
