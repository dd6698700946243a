"""The command line of `codex exec`: it repeats the permissions, and contains no secrets."""

from __future__ import annotations

import tomllib
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from sessionmgr.model import Json
from sessionmgr_adapters.codex.exec.launch import ExecSpec, encode_toml


def spec(**more: object) -> ExecSpec:
    known: dict[str, object] = {
        "program": ("codex",),
        "cwd": "/work",
        "env": {"A": "b"},
        "sandbox": "read-only",
    }
    return ExecSpec(**{**known, **more})  # type: ignore[arg-type]


def argv(**more: object) -> list[str]:
    made = spec(**more)
    names = (*made.files, *made.links)
    return list(made.command({name: f"/files/{name}" for name in names}).argv)


def settings(line: list[str]) -> dict[str, Json]:
    said = [after for flag, after in pairwise(line) if flag == "-c"]
    return {name: tomllib.loads(f"x = {value}")["x"] for name, _, value in map(_cut, said)}


def _cut(said: str) -> tuple[str, str, str]:
    return said.partition("=")


@pytest.mark.parametrize("thread", [None, "thread-1"])
def test_what_it_may_do_is_said_to_new_threads_and_old_ones(thread: str | None) -> None:
    line = argv(thread=thread, settings=(("approval_policy", "on-request"),))
    assert line[:3] == ["codex", "exec", "--sandbox=read-only"]
    assert settings(line)["approval_policy"] == "never"


def test_nobody_is_told_of_it() -> None:
    assert settings(argv())["analytics.enabled"] is False


def test_the_prompt_stands_nowhere_on_the_line() -> None:
    assert argv()[-1] == "-"
    assert argv(thread="t", is_fork=True)[-2:] == ["t", "-"]


def test_a_thread_is_gone_on_with_or_forked() -> None:
    assert "resume" in argv(thread="t")
    assert "fork" in argv(thread="t", is_fork=True)
    assert not {"resume", "fork"} & set(argv())


def test_images_swallow_nothing_that_follows() -> None:
    line = argv(images=("a.png", "b,c.png"), thread="t")
    assert spec(images=("a.png", "b,c.png")).links["image1"] == "/work/b,c.png"
    assert line.index("--image=/files/image1") < line.index("--json") < line.index("t")


def test_files_are_named_where_there_are_some() -> None:
    line = argv(schema={}, instructions="Be kind.")
    assert "--output-last-message=/files/answer" in line
    assert "--output-schema=/files/schema.json" in line
    assert settings(line)["model_instructions_file"] == "/files/instructions"
    assert not any(each.startswith("--output-schema") for each in argv())


def test_a_setting_that_is_nothing_is_not_said() -> None:
    assert "model" not in settings(argv(settings=(("model", None),)))


VALUES = st.recursive(
    st.text(st.characters(exclude_categories=["Cs"]))
    | st.booleans()
    | st.integers(-(2**53), 2**53),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_a_setting_means_what_it_meant(value: Json) -> None:
    said = encode_toml(value)
    assert "\n" not in said
    assert tomllib.loads(f"x = {said}")["x"] == value


def test_what_is_nothing_is_left_out_of_a_setting() -> None:
    assert tomllib.loads(f"x = {encode_toml({'a': None, 'b': [1, None]})}")["x"] == {"b": [1]}
