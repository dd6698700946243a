"""Load: many runs at once, a very long line, a long life, and the end of the owner."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
import trio

from sessionmgr.manager import Clocks
from sessionmgr.model import Json, RunStatus
from sessionmgr.testing.model_server import ModelCall, ModelSay, ModelScript, ModelServer
from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment
from sessionmgr_adapters.claude import ClaudeAdapter
from tests.real.claude.harness import PATIENCE, RealAgentHarness, open_house, until
from tests.real.killed_owner import goes_on_after_that, kill_owner

MEGABYTE = 1024 * 1024
AT_ONCE = 10
TURNS = 100


async def test_sessions_at_the_same_time_do_not_mix(
    house: RealAgentHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All of them start at once: none hangs because it waits for the others.
    monkeypatch.setattr(ClaudeAdapter, "patience", PATIENCE)
    clocks = Clocks(start=PATIENCE)

    async def one(number: int) -> None:
        session = await house.session("full_auto")
        for turn in range(2):
            name = f"s{number}t{turn}"
            script: ModelScript = [
                [ModelCall(tool="shell", input={"command": f"echo tool-{name}"})],
                [ModelSay(text=f"text-{name}", deltas=4)],
            ]
            played = await house.play(script, session, clocks=clocks)
            assert played.result.status is RunStatus.COMPLETED, played.result.failure
            assert played.result.text == f"text-{name}"
            outputs = [getattr(each, "tool_output", None) for each in played.events]
            assert [each for each in outputs if each] == [f"tool-{name}"]

    async with trio.open_nursery() as nursery:
        for number in range(AT_ONCE):
            nursery.start_soon(one, number)


async def test_a_result_of_20_megabytes_is_one_line_and_costs_its_size_a_few_times(
    house: RealAgentHarness,
) -> None:
    """The edit of a large file is reported with its complete earlier contents."""
    path = house.work / "large.txt"
    path.write_text("first line\n" + "0123456789abcde\n" * (20 * MEGABYTE // 16))
    change: dict[str, Json] = {"old_string": "first line", "new_string": "a line"}
    script: ModelScript = [
        [ModelCall(tool="Read", input={"file_path": str(path), "limit": 1})],
        [ModelCall(tool="Edit", input={"file_path": str(path), **change})],
        [ModelSay(text="done")],
    ]
    session = await house.session("full_auto")
    await house.play([[ModelSay(text="warm")]], session)
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak to the present value
    before = resident("VmHWM")
    played = await house.play(script, session)
    assert played.result.status is RunStatus.COMPLETED, played.result.failure
    assert path.read_bytes().startswith(b"a line\n")
    assert played.result.tool_calls.failed == 0
    assert "error_occurred" not in played.types
    assert resident("VmHWM") - before < 5 * 20 * MEGABYTE


def resident(name: str) -> int:
    """Return how many bytes of memory this process has, or had at its peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (found,) = [int(each.split()[1]) for each in lines if each.startswith(name)]
    return found * 1024


async def test_a_long_life_does_not_grow_on_our_side(
    server: ModelServer, hermitage: IsolatedEnvironment, newest: Path, tmp_path: Path
) -> None:
    env = {**hermitage.claude(), "IS_SANDBOX": "1"}
    async with open_house(server, newest, hermitage.work, env, store=tmp_path / "runs.db") as house:
        session = await house.session()
        early = 0
        for turn in range(TURNS):
            run = await session.submit("hello", options=house.options())
            assert (await run.result()).status is RunStatus.COMPLETED
            if turn == TURNS // 5:
                early = ours()
        # The work that follows the end of a run comes to its end; a leak does not.
        await until(lambda: ours() - early < TURNS // 50)


def ours() -> int:
    """Return the number of our objects, without those of the model server."""
    gc.collect()
    modules = [type(each).__module__ for each in gc.get_objects()]
    return sum("sessionmgr" in each and "model_server" not in each for each in modules)


async def test_nothing_outlives_the_program_that_owns_it(
    server: ModelServer, hermitage: IsolatedEnvironment, newest: Path, tmp_path: Path
) -> None:
    env, work, store = (
        {**hermitage.claude(), "IS_SANDBOX": "1"},
        hermitage.work,
        tmp_path / "runs.db",
    )
    await kill_owner("claude", newest, store, work, env)
    async with open_house(server, newest, work, env, store=store) as house:
        await goes_on_after_that(house)
