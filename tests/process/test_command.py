from __future__ import annotations

import pytest

from sessionmgr.process import CommandInvalid, ProcessError
from sessionmgr.process.command import Command


def command(*argv: str, cwd: str = "/", **env: str) -> Command:
    return Command(argv=argv, cwd=cwd, env=env)


def test_a_command_keeps_what_it_is_given() -> None:
    given = Command(argv=("cat", "-"), cwd="/tmp", env={"A": "1"}, stdin=False)
    assert (given.argv, given.cwd, given.env, given.stdin) == (
        ("cat", "-"),
        "/tmp",
        {"A": "1"},
        False,
    )
    assert command("cat").stdin


@pytest.mark.parametrize(
    ("argv", "cwd", "env", "complaint"),
    [
        ((), "/", {}, "no program"),
        (("",), "/", {}, "no program"),
        (("cat", "a\0b"), "/", {}, r"argv\[1\] contains a NUL byte"),
        (("cat",), "here", {}, "not an absolute path: 'here'"),
        (("cat",), "", {}, "not an absolute path"),
        (("cat",), "/a\0b", {}, "not an absolute path"),
        (("cat",), "/", {"": "1"}, "name ''"),
        (("cat",), "/", {"A=B": "1"}, "name 'A=B'"),
        (("cat",), "/", {"A\0": "1"}, "invalid variable name"),
    ],
)
def test_what_no_system_could_start_is_refused(
    argv: tuple[str, ...], cwd: str, env: dict[str, str], complaint: str
) -> None:
    with pytest.raises(CommandInvalid, match=complaint):
        Command(argv=argv, cwd=cwd, env=env)


def test_a_refusal_does_not_tell_the_value_of_a_variable() -> None:
    with pytest.raises(CommandInvalid, match="the value of KEY contains a NUL") as caught:
        command("cat", KEY="hush\0")
    assert "hush" not in str(caught.value)
    assert isinstance(caught.value, (ProcessError, ValueError))


def test_a_command_does_not_change_with_the_dictionary_it_was_made_from() -> None:
    env = {"A": "1"}
    made = Command(argv=("cat",), cwd="/", env=env)
    env["B"] = "2"
    assert made.env == {"A": "1"}


def test_the_text_of_a_command_names_variables_and_not_their_values() -> None:
    text = repr(command("cat", KEY="hush"))
    assert "KEY" in text
    assert "hush" not in text
