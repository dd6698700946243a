"""One scene with an approval and a message, with a fault at each step of its recorder."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import pytest
import trio
import trio.lowlevel
from trio.testing import MockClock

from sessionmgr.adapter import Allow, ApprovalRequest, Decision, StartRefused
from sessionmgr.manager import RunHandle
from sessionmgr.manager.inbox import ROOM
from sessionmgr.model import TERMINAL, FailureKind, RunResult, RunStatus
from sessionmgr.store import Append, AppendResult, MemoryStore, StoreClosed
from sessionmgr.testing.faulty_store import FaultyStore
from sessionmgr.testing.scripted_provider import Ask, Finish, Flood, Hear, Say, TurnEnd, Use
from tests.manager.harness import ManagerHarness, open_harness, run_scripted, stored

STEPS = 14
"""More than the scene has batches."""


class StumblingStore(MemoryStore):
    """A store that raises once, at its n-th append, before or after it has stored it."""

    def __init__(self, nth: int, when: Literal["before", "after"], error: Exception) -> None:
        super().__init__()
        self.left = nth
        self.when = when
        self.error = error

    async def append_all(self, appends: Sequence[Append]) -> Sequence[AppendResult | Exception]:
        self.left -= 1
        stumbles = self.left == 0
        if stumbles and self.when == "before":
            raise self.error
        outcomes = await super().append_all(appends)
        if stumbles:
            raise self.error
        return outcomes


@dataclass
class StepScene:
    """A scene: ask, get a message, use tokens, end; and what was stored at each effect."""

    house: ManagerHarness
    stored_when_asked: list[list[str]] = field(default_factory=list[list[str]])
    runs: list[RunHandle] = field(default_factory=list[RunHandle])
    read: list[str] = field(default_factory=list[str])

    async def approve(self, request: ApprovalRequest) -> Decision:
        self.stored_when_asked.append(await stored(self.house, request.session_id))
        return Allow()

    async def play(self) -> RunResult | None:
        session = await self.house.manager.open_session("actor", approve=self.approve)
        steps = (Ask(tool="rm"), Hear(), Use(output=5), Say(text="bye"), TurnEnd(), Finish())
        try:
            run = await session.submit(run_scripted(*steps))
        except StartRefused:
            return None
        self.runs.append(run)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._read, run)
            await trio.sleep(1)
            self.runs.append((await run.append("the message")).run)
            with trio.fail_after(4000):
                result = await run.result()
            for each in self.runs:
                await each.result()
        return result

    async def _read(self, run: RunHandle) -> None:
        with trio.fail_after(4000):
            async for event in run:
                self.read.append(event.type)


def no_effect_without_its_record(scene: StepScene, names: list[str]) -> None:
    for seen in scene.stored_when_asked:
        assert seen[-1] == "tool_approval_requested"
    if "the message" in scene.house.saw("append"):
        assert names.count("message_sent") >= 2
    saw = scene.house.saw("append") + scene.house.saw("prompt")
    assert saw.count("the message") <= 1
    assert len(scene.stored_when_asked) <= 1
    if "tool_call_started" in names:
        assert "tool_approval_granted" in names[: names.index("tool_call_started")]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("nth", range(1, STEPS))
async def test_a_recorder_that_crashes_at_any_step_leaves_no_effect_without_its_record(
    autojump_clock: MockClock, nth: int, when: Literal["before", "after"]
) -> None:
    store = StumblingStore(nth, when, RuntimeError("as planned"))
    async with open_harness(store=store) as house:
        scene = StepScene(house)
        result = await scene.play()
        for run in scene.runs:
            assert run.status in TERMINAL
            assert (await store.run(run.id)).status == run.status
        if result is not None:
            assert scene.read[-1].removeprefix("run_") == result.status
            if result.failure is not None:
                assert result.failure.kind is FailureKind.MANAGER_CRASHED
            no_effect_without_its_record(scene, await stored(house, result.session_id))
        store.left = 0
        # nothing is left that could affect others
        assert (await house.result(Say(text="next"))).text == "next"


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("nth", range(1, STEPS))
async def test_a_store_that_fails_at_any_step_costs_nothing_but_time(
    autojump_clock: MockClock, nth: int, when: Literal["before", "after"]
) -> None:
    store = StumblingStore(nth, when, StoreClosed("for a moment"))
    async with open_harness(store=store) as house:
        scene = StepScene(house)
        result = await scene.play()
        assert result is not None
        assert (result.status, result.text) == (RunStatus.COMPLETED, "bye")
        assert result.usage.output == 5
        names = await stored(house, result.session_id)
        no_effect_without_its_record(scene, names)
        assert scene.read == names[1:]
        assert house.saw("append") == ["the message"]


async def test_the_scene_has_fewer_steps_than_are_tried(autojump_clock: MockClock) -> None:
    store = StumblingStore(STEPS, "before", RuntimeError("never"))
    async with open_harness(store=store) as house:
        result = await StepScene(house).play()
        assert result is not None
        assert result.status is RunStatus.COMPLETED
        assert 0 < store.left < STEPS


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_flood_waits_for_room_while_the_store_is_frozen(
    autojump_clock: MockClock, moment: str
) -> None:
    store = FaultyStore()
    async with open_harness(store=store) as house:
        run = await house.start(Flood(events=120, size=100_000), Finish())
        if moment == "after":
            await trio.lowlevel.checkpoint()
        store.thawed = trio.Event()
        await trio.sleep(30)
        assert run.status in {RunStatus.PENDING, RunStatus.RUNNING}
        assert house.saw("over") == []  # 12 MB are more than there is room for
        store.thawed.set()
        assert (await run.result()).status is RunStatus.COMPLETED
        assert store.largest * 100_000 <= ROOM + 2 * 100_000
