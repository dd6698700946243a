"""The parameters of threads of a real Codex, and secrets that they keep from commands."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import trio
from msgspec import structs

from sessionmgr.model import FailureKind, Json, ToolCallCompleted
from sessionmgr.testing.model_server import ModelCall, ModelHang, ModelSay, ModelScript
from sessionmgr.testing.player import RecordedLine
from sessionmgr_adapters.codex import CodexOptions, CodexTool
from sessionmgr_adapters.codex.thread_cache import MAX_IDLE_THREADS
from tests.real.codex.contract import said_in
from tests.real.harness import (
    PlayedRun,
    RealAgentHarness,
    line_of,
    see,
    until,
    until_event,
    with_word,
)

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def outputs(played: PlayedRun) -> list[str]:
    """Return the output of commands."""
    ended = [each for each in played.events if isinstance(each, ToolCallCompleted)]
    found = [each.tool_output for each in ended]
    return [str(each["output"]) for each in found if isinstance(each, dict)]


async def weather(given: dict[str, Json]) -> Json:
    await trio.lowlevel.checkpoint()
    return {"mild": given["city"]}


async def test_threads_have_what_is_theirs_and_no_more(any_house: RealAgentHarness) -> None:
    house = any_house
    project = house.place("project")
    await trio.run_process(["git", "init", "-q", str(project)])
    settings = Path(house.env["CODEX_HOME"]) / "config.toml"
    before = settings.read_text()
    played: dict[str, PlayedRun] = {}

    async def nothing_is_noted() -> None:
        session = await house.session("full_auto", cwd=project)
        script: ModelScript = [
            [ModelCall(tool="shell", input={"command": "env; mktemp"})],
            [ModelSay(text="done")],
        ]
        played["env"] = await house.play(script, session)
        assert played["env"].result.status == "completed", played["env"].result

    async def functions_are_called_and_stay() -> None:
        tool = CodexTool("weather", "Say what the weather is.", weather)
        options = CodexOptions(command=(str(house.program),), tools=(tool,))
        session = await house.session()
        script: ModelScript = [
            [ModelCall(tool="weather", input={"city": "Rome"})],
            [ModelSay(text="It is mild.")],
            [ModelCall(tool="weather", input={"city": "Oslo"})],
            [ModelSay(text="There, too.")],
        ]
        played["function"] = await house.play(script, session, options=options)
        played["again"] = await see(await house.submit(session, "And Oslo?", options=options))

    async def images_and_schemas_are_passed_on() -> None:
        (house.work / "dot.png").write_bytes(PNG)
        schema: dict[str, Json] = {
            "type": "object",
            "properties": {"answer": {"type": "integer", "minimum": 3}},
            "required": ["answer"],
            "additionalProperties": False,
        }
        session = await house.session("plan")
        run = await house.submit(session, "How many?", images=("dot.png",), schema=schema)
        result = await run.result()
        assert (result.status, result.structured) == ("completed", {"answer": 3}), result
        assert any(each.schema == schema for each in house.asked(result.provider_session_id))

    async def a_fork_leaves_the_old_thread_as_it_is() -> None:
        session = await house.session("plan")
        first = (await house.play([[ModelSay(text="one")], [ModelSay(text="two")]], session)).result
        forked = await house.submit(session, "And?", options=house.options(fork=True))
        result = await forked.result()
        assert (result.status, result.text) == ("completed", "two"), result
        assert result.provider_session_id != first.provider_session_id

    async with trio.open_nursery() as nursery:
        for case in (
            nothing_is_noted,
            functions_are_called_and_stay,
            images_and_schemas_are_passed_on,
            a_fork_leaves_the_old_thread_as_it_is,
        ):
            nursery.start_soon(case)

    assert settings.read_text() == before
    [printed] = outputs(played["env"])
    assert house.env["CODEX_MODEL_KEY"] not in printed
    assert f"CODEX_THREAD_ID={played['env'].result.provider_session_id}" in printed
    scratch = printed.split("TMPDIR=")[1].split("\n")[0]
    assert printed.strip().splitlines()[-1].startswith(f"{scratch}/")
    assert not await trio.Path(scratch).exists()
    told = [each.tool_output for name in ("function", "again") for each in ends(played[name])]
    assert [str(each).count("mild") for each in told] == [1, 1], told


async def test_functions_are_refused_that_a_thread_was_begun_without(
    any_house: RealAgentHarness,
) -> None:
    house = any_house
    mild, wild = (CodexTool(name, "Say how it is.", weather) for name in ("mild", "wild"))
    plain = CodexOptions(command=(str(house.program),))
    options = structs.replace(plain, tools=(mild,))
    script: ModelScript = [[ModelSay(text="done")]]
    bare, begun = await house.session("plan"), await house.session("plan")
    await house.goes_on(bare)
    await house.goes_on(begun, options=options)
    for session, tools in ((bare, (mild,)), (begun, (mild, wild))):
        for fork in (False, True):
            refused = structs.replace(plain, tools=tools, fork=fork)
            failure = (await house.play(script, session, options=refused)).result.failure
            assert failure is not None
            assert failure.kind is FailureKind.CONFIG_INVALID
            said = f"options.tools: the thread was started without {tools[-1].name}, and "
            assert failure.message == f"{said}a thread keeps its functions"
    for fork in (True, False):
        await house.goes_on(begun, options=structs.replace(options, fork=fork, keep=False))
        offered = house.server.log.asked[-1].body["tools"]
        assert isinstance(offered, list)
        assert "mild" in [each.get("name") for each in offered if isinstance(each, dict)]


def ends(played: PlayedRun) -> list[ToolCallCompleted]:
    return [each for each in played.events if isinstance(each, ToolCallCompleted)]


async def test_a_thread_stays_loaded_for_runs_that_want_the_same(house: RealAgentHarness) -> None:
    session = await house.session("full_auto")
    first = (await house.goes_on(session)).result.provider_session_id
    await house.goes_on(session)
    await house.goes_on(session, model="gpt-5.5")
    other = await house.goes_on(session, env={"ANOTHER": "environment"})
    await house.goes_on(session)
    once = await house.goes_on(session, options=house.options(exec=True))
    assert {first, other.result.provider_session_id, once.result.provider_session_id} == {first}

    def calls() -> list[Counter[str]]:
        return [calls_done(entries) for _, entries in said_in(house.work.parent / "talk")]

    # The last call of a run; the recording lags behind the run.
    await until(lambda: sum(each["thread/unsubscribe"] for each in calls()) >= 4)
    assert [
        (
            each["thread/start"],
            each["thread/resume"],
            each["thread/unsubscribe"],
            each["turn/start"],
        )
        for each in sorted(calls(), key=lambda each: -each["turn/start"])
    ] == [(1, 2, 3, 4), (0, 1, 1, 1)]


def calls_done(entries: Iterable[RecordedLine]) -> Counter[str]:
    """Count our calls by method, without refused ones.

    Codex may refuse a thread that it has just closed; then the call is repeated.
    """
    messages = [(each.dir, each.msg) for each in entries if isinstance(each.msg, dict)]
    refused = [msg.get("id") for who, msg in messages if who == "<" and "error" in msg]
    return Counter(
        str(msg.get("method"))
        for who, msg in messages
        if who == ">" and msg.get("id") not in refused
    )


async def test_threads_that_nobody_needs_are_unloaded(house: RealAgentHarness) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(MAX_IDLE_THREADS + 4):
            nursery.start_soon(house.goes_on, await house.session("plan"))

    await until(lambda: called(house, "thread/unsubscribe") >= 4)  # after the runs
    assert called(house, "thread/unsubscribe") == 4
    assert len(said_in(house.work.parent / "talk")) == 1


def called(house: RealAgentHarness, method: str) -> int:
    """Return how often a method has been called, as far as it is recorded."""
    talks = said_in(house.work.parent / "talk")
    said = [each.msg for _, entries in talks for each in entries if isinstance(each.msg, dict)]
    return [each.get("method") for each in said].count(method)


async def test_the_thread_of_a_session_that_is_released_is_open_to_others_at_once(
    house: RealAgentHarness,
) -> None:
    session, other = await house.session("plan"), await house.session("plan")
    for each in (session, other):
        await house.goes_on(each)
    session.release()
    await until(lambda: called(house, "thread/unsubscribe") == 1)
    await house.goes_on(session)
    await until(lambda: called(house, "turn/start") == 3)
    assert called(house, "thread/unsubscribe") == 1
    assert len(said_in(house.work.parent / "talk")) == 1


async def test_what_hides_from_a_cancel_is_found(house: RealAgentHarness) -> None:
    word = house.word()
    hiding = (
        f'setsid sleep 301 & (trap "" TERM; sleep 302) & (setsid setsid sleep 303 &) ; : {word}'
    )
    session = await house.session("dangerously_skip_permissions")
    script: ModelScript = [
        [ModelCall(tool="shell", input={"command": f"{hiding}; sleep 304"})],
        [ModelHang()],  # after ten seconds Codex no longer waits for the command
    ]
    run = await house.submit(session, script)
    await until_event(run, "tool_call_started")
    servers = set(with_word(house.mark))
    run.cancel()
    assert (await run.result()).status == "cancelled"
    await until(
        lambda: not any(line_of(each).startswith(b"sleep") for each in with_word(house.mark))
    )
    assert servers & set(with_word(house.mark)), "its app-server is there still"
    await house.goes_on(session)
