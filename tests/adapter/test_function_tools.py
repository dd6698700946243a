"""Functions of the caller, called as tools."""

from __future__ import annotations

from sessionmgr.adapter.kit.function_tools import FunctionTool, FunctionTools, ToolOutcome
from sessionmgr.model import Json


async def keys(given: dict[str, Json]) -> Json:
    return [*given]


async def fail(given: dict[str, Json]) -> Json:
    raise ValueError("no such place")


async def none(given: dict[str, Json]) -> Json:
    return f"given {given}"


TOOLS = FunctionTools(
    (FunctionTool("keys", "", keys), FunctionTool("fail", "", fail), FunctionTool("none", "", none))
)


async def test_a_text_is_told_as_it_is_and_anything_else_as_json() -> None:
    assert await TOOLS.call("keys", {"a": 1}) == ToolOutcome('["a"]')
    assert await TOOLS.call("none", {}) == ToolOutcome("given {}")


async def test_arguments_that_are_no_object_are_none_at_all() -> None:
    assert await TOOLS.call("none", ["a"]) == ToolOutcome("given {}")


async def test_what_a_tool_raises_is_for_the_model_to_see() -> None:
    assert await TOOLS.call("fail", {}) == ToolOutcome("ValueError: no such place", failed=True)


async def test_a_tool_that_is_not_there_is_no_crash() -> None:
    assert await TOOLS.call("gone", {}) == ToolOutcome("unknown tool 'gone'", failed=True)
    assert await TOOLS.call(None, {}) == ToolOutcome("unknown tool None", failed=True)
