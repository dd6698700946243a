"""Inputs are read, or refused with a message that says what was expected."""

import io
from pathlib import Path

import pytest

from sessionmgr.cli.errors import CommandLineInvalid
from sessionmgr.cli.inputs import read_env, read_options, read_prompt, read_schema


def stdin_of(data: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(data))


def test_a_prompt_is_as_given_or_from_stdin() -> None:
    assert read_prompt("do it", None, None) == "do it"
    assert read_prompt("-", None, stdin_of("Grüße\n".encode())) == "Grüße\n"


@pytest.mark.parametrize(
    ("given", "stdin", "said"),
    [
        ("-", None, "stdin, which is closed"),
        ("-", b"", "stdin is empty"),
        ("-", b"\xff", "stdin is not UTF-8 text"),
    ],
)
def test_a_prompt_that_is_none_is_refused(given: str, stdin: bytes | None, said: str) -> None:
    with pytest.raises(CommandLineInvalid, match=said):
        read_prompt(given, None, None if stdin is None else stdin_of(stdin))


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "prompt").write_bytes(b"\xff\xfe")
    with pytest.raises(CommandLineInvalid, match=r"--prompt-file: .* is not UTF-8 text"):
        read_prompt(None, str(tmp_path / "prompt"), None)


def test_variables_of_flags_win_over_those_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "env").write_text('# ours\n\nA=1\nexport B="two words"\nC=\'\n')
    found = read_env(["A=one=1", "D="], str(tmp_path / "env"))
    assert found == {"A": "one=1", "B": "two words", "C": "'", "D": ""}


def test_a_wrong_line_of_variables_is_named_and_not_shown(tmp_path: Path) -> None:
    (tmp_path / "env").write_text("A=1\nsk-secret\n")
    with pytest.raises(CommandLineInvalid, match=r"env:2: expected NAME=VALUE$"):
        read_env([], str(tmp_path / "env"))


def test_an_option_that_is_json_is_that_and_any_other_is_text() -> None:
    pairs = ["a=1", "b=true", "c=[1, 2]", "d=word", 'e="1"', "f=", "g=x=y"]
    assert read_options("--option", pairs) == {
        "a": 1, "b": True, "c": [1, 2], "d": "word", "e": "1", "f": "", "g": "x=y",
    }  # fmt: skip
    with pytest.raises(CommandLineInvalid, match="--option: expected NAME=VALUE, got '=1'"):
        read_options("--option", ["=1"])


@pytest.mark.parametrize(
    ("text", "said"), [("{", "is not valid JSON"), ("[]", "contains no JSON object")]
)
def test_a_schema_that_is_none_is_refused(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text(text)
    with pytest.raises(CommandLineInvalid, match=said):
        read_schema(str(path))
    path.write_text('{"type": "object"}')
    assert read_schema(str(path)) == {"type": "object"}
