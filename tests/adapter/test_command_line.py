import subprocess
import time

import pytest
from hypothesis import given, strategies as st

from sessionmgr.adapter.kit.command_line import (
    NotSimpleError,
    SimpleCommand,
    plain_argv,
    read_script,
    split_argv,
)

# Characters that a shell interprets in an argv as well as in a script.
LETTERS = st.text(st.sampled_from("ab '\"\\\t=-é"), max_size=12)


def by_the_shell(text: str) -> list[str] | None:
    """Return the words into which /bin/sh splits it; None if it cannot."""
    script = f"for each in {text}\ndo printf '%s\\0' \"$each\"; done"
    found = subprocess.run(["/bin/sh", "-c", script], capture_output=True, check=False)
    return None if found.returncode else found.stdout.decode().split("\0")[:-1]


@given(text=LETTERS.filter(lambda text: not text.endswith("\\")))
def test_words_are_split_as_a_shell_splits_them(text: str) -> None:
    try:
        words = split_argv(text)
    except NotSimpleError:
        assert by_the_shell(text) is None
    else:
        assert words == by_the_shell(text)


@pytest.mark.parametrize(
    ("text", "argv"),
    [
        ("echo ok; id -u", ["echo", "ok;", "id", "-u"]),
        ("echo $HOME `id` $(id) > x", ["echo", "$HOME", "`id`", "$(id)", ">", "x"]),
        ("a\nb", ["a", "b"]),
        (r'"a\$b" "a\b" a\b', ["a$b", r"a\b", "ab"]),
        ("''", [""]),
        ("", []),
        ("a\\\nb", ["ab"]),
        ("# a", ["#", "a"]),
    ],
)
def test_in_an_argv_every_other_character_is_itself(text: str, argv: list[str]) -> None:
    assert split_argv(text) == argv


@pytest.mark.parametrize("text", ["'a", '"a', 'a "b', "a 'b"])
def test_a_quote_must_be_closed(text: str) -> None:
    with pytest.raises(NotSimpleError, match="is not closed"):
        split_argv(text)


@pytest.mark.parametrize(
    "text",
    [
        "echo $(id)",
        "echo `id`",
        'echo "$(id)"',
        'echo "`id`"',
        "echo ${x:-$(id)}",
        "$x",
        "(id)",
        "{ id; }",
        "if true; then id; fi",
        "! id",
        "f() { id; }",
        "PATH=. id",
        "x=1",
        "x+=1 id",
        "cat <(id)",
        "cat << x\nid\nx",
        "id &> x",
        "id |& cat",
        "~/id",
        "echo # id",
        "/usr/bin/i?",
        "echo > $x",
        "echo >",
        "echo >& x",
        "case x in x) id;; esac",
        "",
        " \n ",
    ],
)
def test_what_is_more_than_plain_commands_is_refused(text: str) -> None:
    with pytest.raises(NotSimpleError):
        read_script(text)


def test_the_commands_of_a_script_are_found() -> None:
    script = read_script("a 'b c' | d 2>&1 >> e && f; g &\nh")
    assert [
        [word.text for word in each.words] if isinstance(each, SimpleCommand) else each
        for each in script
    ] == [["a", "b c"], "|", ["d"], "&&", ["f"], ";", ["g"], "&", "\n", ["h"]]
    (d,) = (
        each for each in script if isinstance(each, SimpleCommand) and each.words[0].text == "d"
    )
    assert [each.text() for each in d.redirections] == ["2>&1", ">>e"]


@pytest.mark.parametrize("text", ["y" * 10_000_000, '"' + "y" * 10_000_000 + '"'])
def test_a_long_prompt_is_split_in_a_time_that_holds_nothing_up(text: str) -> None:
    begun = time.process_time()
    split_argv(text)
    assert time.process_time() - begun < 3.0  # character by character it takes over 4 s


def test_a_prompt_that_no_system_could_take_as_an_argv_is_refused_with_its_size() -> None:
    with pytest.raises(
        NotSimpleError, match="it has 3,000,000 characters; a command may have at most"
    ):
        plain_argv("y" * 3_000_000)
