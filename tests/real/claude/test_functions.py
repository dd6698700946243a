"""Functions of the caller, called by a real Claude Code; and images in both directions."""

from __future__ import annotations

import base64

import pytest

from sessionmgr.model import FailureKind, ImageReceived, Json, RunStatus
from sessionmgr.testing.model_server import ModelCall, ModelSay, ModelScript, prompt_with
from sessionmgr_adapters.claude import ClaudeHook, ClaudeOptions, ClaudeTool
from tests.real.claude.harness import RealAgentHarness

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAIB5dOwawAAAABJRU5ErkJg"
    "gg=="
)


async def add(given: dict[str, Json]) -> Json:
    match given:
        case {"a": int(a), "b": int(b)}:
            return f"it is {a + b}"
        case _:
            raise ValueError("two numbers are wanted")


NUMBER: Json = {"type": "number"}
ADD = ClaudeTool(
    name="add",
    description="Add two numbers.",
    call=add,
    schema={"type": "object", "properties": {"a": NUMBER, "b": NUMBER}, "required": ["a", "b"]},
)
READS = ClaudeTool(name="look", description="Look.", call=add, reads_only=True)


def options(house: RealAgentHarness, **more: object) -> ClaudeOptions:
    return ClaudeOptions(command=(str(house.program),), **more)  # type: ignore[arg-type]


async def test_a_tool_of_ours_is_called_and_its_failure_told(any_house: RealAgentHarness) -> None:
    script: ModelScript = [
        [ModelCall(tool="mcp__sessionmgr__add", input={"a": 2, "b": 3})],
        [ModelCall(tool="mcp__sessionmgr__add", input={"a": "x", "b": 3})],
        [ModelSay(text="done")],
    ]
    played = await any_house.play(script, options=options(any_house, tools=(ADD,)))
    assert played.result.status is RunStatus.COMPLETED, played.result.failure
    results = [each.text for asked in any_house.server.log.asked for each in asked.results]
    assert results[0] == "it is 5"
    assert "two numbers are wanted" in results[1]
    assert played.result.tool_calls.count == {"mcp__sessionmgr__add": 2}
    assert played.result.permission_denials == ()


async def test_a_run_that_plans_calls_only_those_that_read(house: RealAgentHarness) -> None:
    calls = [{"tool": f"mcp__sessionmgr__{name}"} for name in ("add", "look")]
    script: ModelScript = [
        *([ModelCall(tool=each["tool"], input={"a": 1, "b": 1})] for each in calls),
        [ModelSay(text="done")],
    ]
    session = await house.session("plan")
    await house.play(script, session, options=options(house, tools=(ADD, READS)))
    results = [each.text for asked in house.server.log.asked for each in asked.results]
    assert [text == "it is 2" for text in results] == [False, True], results


async def test_a_tool_of_ours_allows_no_other_that_is_called_alike(
    any_house: RealAgentHarness,
) -> None:
    ours = ClaudeTool("Bash", "Add two numbers.", add)
    script: ModelScript = [
        [ModelCall(tool="shell", input={"command": "touch x"})],
        [ModelSay(text="done")],
    ]
    played = await any_house.play(script, options=options(any_house, tools=(ours,)))
    assert [each.tool_name for each in played.result.permission_denials] == ["Bash"]
    assert list(any_house.work.iterdir()) == []


async def test_hooks_see_what_happens_and_change_it(house: RealAgentHarness) -> None:
    seen: list[str] = []

    async def before(event: dict[str, Json]) -> dict[str, Json]:
        seen.append(str(event["tool_name"]))
        changed: Json = {"command": "echo changed", "description": "d"}
        decided: dict[str, Json] = {
            "hookEventName": "PreToolUse",
            "permissionDecision": "allow",
            "updatedInput": changed,
        }
        return {"hookSpecificOutput": decided}

    async def stops(event: dict[str, Json]) -> dict[str, Json]:
        seen.append(str(event["hook_event_name"]))
        return {}

    async def fails(event: dict[str, Json]) -> dict[str, Json]:
        raise ValueError("a hook of little use")

    hooks = (
        ClaudeHook("PreToolUse", before, matcher="Bash"),
        ClaudeHook("Stop", stops),
        ClaudeHook("PostToolUse", fails),
    )
    script: ModelScript = [
        [ModelCall(tool="shell", input={"command": "touch x"})],
        [ModelSay(text="done")],
    ]
    played = await house.play(script, options=options(house, hooks=hooks))
    assert played.result.status is RunStatus.COMPLETED, played.result.failure
    assert seen == ["Bash", "Stop"]
    assert house.server.log.asked[-1].results[0].text.startswith("changed")


async def test_images_go_with_a_prompt(house: RealAgentHarness) -> None:
    (house.work / "a.png").write_bytes(PIXEL)
    session = await house.session()
    run = await session.submit(
        prompt_with([[ModelSay(text="seen")]], "What is it?"),
        images=("a.png",),
        options=house.options(),
    )
    assert (await run.result()).text == "seen"
    body = str(house.server.log.asked[-1].body["messages"])
    assert base64.b64encode(PIXEL).decode() in body
    (house.work / "b.txt").write_text("no image")
    for path, why in (("b.txt", "not a PNG"), ("none.png", "cannot be read")):
        run = await session.submit("x", images=(path,), options=house.options())
        failure = (await run.result()).failure
        assert failure is not None
        assert failure.kind is FailureKind.CONFIG_INVALID
        assert path in failure.message
        assert why in failure.message


@pytest.mark.parametrize("times", [2])
async def test_images_that_a_tool_shows_are_kept_once(house: RealAgentHarness, times: int) -> None:
    path = house.work / "a.png"
    path.write_bytes(PIXEL)
    read = [ModelCall(tool="read", input={"path": str(path)})]
    played = await house.play([*([read] * times), [ModelSay(text="seen")]])
    assert played.result.status is RunStatus.COMPLETED, played.result.failure
    shown = [each for each in played.events if isinstance(each, ImageReceived)]
    (image,) = played.result.images
    assert len(shown) == 1
    assert (image.media_type, shown[0].blob) == ("image/png", image.blob)
    assert "iVBOR" not in str(played.events)
