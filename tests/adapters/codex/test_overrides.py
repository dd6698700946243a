"""Overrides of a configuration become one table, however they are written."""

from __future__ import annotations

from typing import Final

import pytest

from sessionmgr.adapter.kit.json_rpc_caller import RpcCall
from sessionmgr.model import Json
from sessionmgr_adapters.codex.config import merge_overrides
from tests.adapters.codex.mock_agent import Talk, greeted, refusal
from tests.adapters.codex.mocked_manager import play

CASES: Final[list[tuple[list[dict[str, Json]], dict[str, Json]]]] = [
    ([{"a.b": 1}, {"a": {"c": 2}}], {"a": {"b": 1, "c": 2}}),
    ([{"a": {"c": 2, "b": 3}}, {"a.b": 1}], {"a": {"b": 1, "c": 2}}),
    ([{"a": 1}, {"a.b": 2}], {"a": {"b": 2}}),
    ([{"a.b": 1}, {"a": 2}], {"a": 2}),
    ([{"a": {"x.y": {"z": 1}}}], {"a": {"x.y": {"z": 1}}}),
    ([{"a": {}}], {"a": {}}),
]


@pytest.mark.parametrize(("overrides", "whole"), CASES)
def test_the_later_ones_win_dotted_or_not(
    overrides: list[dict[str, Json]], whole: dict[str, Json]
) -> None:
    assert merge_overrides(*overrides) == whole


def test_nothing_of_the_callers_is_changed() -> None:
    given: dict[str, Json] = {"a": {"b": {"c": 1}}}
    merge_overrides(given, {"a.b.c": 2})
    assert given == {"a": {"b": {"c": 1}}}


@pytest.mark.parametrize(
    "given",
    [
        {"shell_environment_policy": {"set": {"FOO": "1"}, "ignore_default_excludes": True}},
        {
            "shell_environment_policy.set.FOO": "1",
            "shell_environment_policy.ignore_default_excludes": True,
        },
    ],
)
async def test_what_is_set_by_us_is_said_once_and_holds(given: dict[str, Json]) -> None:
    calls: list[RpcCall] = []

    async def look(it: Talk) -> None:
        call = await greeted(it, {"model_providers": {"p": {"env_key": "WORD"}}})
        calls.append(call)
        it.says(refusal(call, "enough"))

    config: Json = {**given, "features": {"plugins": False, "instant_interrupt": True}}
    await play(look, options={"config": config})
    assert calls[0].params["config"] == {
        "features": {"plugins": False, "instant_interrupt": False},
        "shell_environment_policy": {
            "set": {"FOO": "1"},
            "ignore_default_excludes": False,
            "exclude": ["WORD"],
        },
    }


async def test_what_the_caller_hides_stays_hidden() -> None:
    calls: list[RpcCall] = []

    async def look(it: Talk) -> None:
        policy: Json = {"exclude": ["THEIRS"]}
        providers: Json = {"p": {"env_key": "WORD"}}
        call = await greeted(it, {"model_providers": providers, "shell_environment_policy": policy})
        calls.append(call)
        it.says(refusal(call, "enough"))

    await play(look, options={"config": {"shell_environment_policy": {"exclude": ["MINE"]}}})
    config = calls[0].params["config"]
    assert isinstance(config, dict)
    policy = config["shell_environment_policy"]
    assert policy == {"exclude": ["MINE", "WORD"], "ignore_default_excludes": False}
