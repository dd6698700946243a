"""A paused run can be resumed here or by another manager, with the same permissions."""

import shutil
from pathlib import Path
from typing import ClassVar

import pytest
import trio
from msgspec import structs
from trio.testing import MockClock

from sessionmgr.adapter import (
    Allow,
    ApprovalRequest,
    Budget,
    Decision,
    MappedMode,
    PermissionMap,
    PermissionRefused,
    ProviderAdapter,
    RunContext,
)
from sessionmgr.manager import (
    BudgetExhausted,
    Clocks,
    NotPausable,
    NotResumable,
    RunHandle,
    RunRequestUnsupported,
    open_manager,
)
from sessionmgr.manager.resume_spec import read_resume_spec
from sessionmgr.model import (
    NATIVE,
    Capabilities,
    EndReason,
    PermissionMode,
    ProviderSessionUpdated,
    RunPaused,
    RunStarted,
    RunStatus,
    Snapshot,
    ToolCallFailed,
    ToolCallStarted,
)
from sessionmgr.store import MemoryStore, UnknownId
from sessionmgr.testing.scripted_provider import (
    ALL_IT_DOES,
    Ask,
    Deaf,
    Emit,
    Finish,
    Hang,
    Say,
    Step,
    Tool,
    TurnEnd,
    Use,
    Wait,
    scripted,
)
from tests.manager.harness import ManagerHarness, events, open_harness, run_scripted, types


async def paused(house: ManagerHarness, *steps: Step, **how: str) -> tuple[RunHandle, Snapshot]:
    session = await house.manager.open_session("actor", permission_mode="plan")
    run = await session.submit(run_scripted(*steps, Hang()), metadata={"ticket": 1})
    await trio.sleep(1)
    return run, await run.pause(node=how.get("node"), message=how.get("message"))


async def test_a_pause_leaves_a_snapshot_in_the_store(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor", permission_mode="plan")
        run = await session.submit(run_scripted(Say(text="half"), Hang()))
        await trio.sleep(1)
        snapshot = await run.pause(node="step 3", state={"left": [1, 2]}, message="go on")
        result = await run.result()
        assert (result.status, result.reason, result.text) == ("paused", "pause", "half")
        assert snapshot.run_id == run.id
        assert snapshot.session_id == session.id
        assert snapshot.provider_session_id == f"of-{session.id}"
        assert snapshot.cwd == str(Path.cwd())
        assert snapshot.permission == result.permission
        assert (snapshot.node, snapshot.state) == ("step 3", {"left": [1, 2]})
        assert snapshot.message == "go on"
        [kept] = await house.store.snapshots(session.id)
        assert kept.snapshot_id == snapshot.id
        assert house.saw("interrupt") == ["pause"]


@pytest.mark.parametrize(
    ("stored", "given", "said"),
    [(None, None, "continue"), ("go on", None, "go on"), ("go on", "stop that", "stop that")],
)
async def test_it_goes_on_with_a_message(
    autojump_clock: MockClock, stored: str | None, given: str | None, said: str
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor", model=None)
        run = await session.submit(run_scripted(Hang()), metadata={"ticket": 1})
        await trio.sleep(1)
        snapshot = await run.pause(message=stored)
        result = await house.manager.resume(snapshot, given)
        assert (result.status, result.text) == (RunStatus.COMPLETED, said)
        assert result.resumed_from == run.id
        assert (result.session_id, result.id != run.id) == (session.id, True)
        assert result.metadata == {"ticket": 1}
        seen = house.actor.log[-2]
        assert (seen.text, seen.resumed_from) == (said, run.id)
        assert seen.provider_session_id == f"of-{session.id}"


async def test_who_was_asked_before_is_asked_again(autojump_clock: MockClock) -> None:
    async def approve(_: ApprovalRequest) -> Decision:
        await trio.lowlevel.checkpoint()
        return Allow()

    store = MemoryStore()
    asks = run_scripted(Ask(tool="rm"))
    async with open_harness(store=store) as house:
        session = await house.manager.open_session("actor", approve=approve)
        run = await session.submit(run_scripted(Hang()))
        await trio.sleep(1)
        snapshot = await run.pause()
        assert (await house.manager.resume(snapshot, asks)).tool_calls.denied == 0
    async with open_harness(store=store) as house:  # without an approver
        assert (await house.manager.resume(snapshot, asks)).tool_calls.denied == 1
        result = await house.manager.resume(snapshot, asks, approve=approve)
        assert result.tool_calls.denied == 0


async def test_the_permission_is_asserted_again(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    async with open_harness(store=store) as house:
        _, snapshot = await paused(house)
        again = await house.manager.submit_resume(snapshot)
        result = await again.result()
        assert result.permission == snapshot.permission
        [started] = [each for each in await events(again) if isinstance(each, RunStarted)]
        assert started.permission == snapshot.permission
        assert house.actor.log[-2].mode is PermissionMode.PLAN
    wider = scripted(
        "actor", permissions=PermissionMap({PermissionMode.FULL_AUTO: MappedMode("all")})
    )
    async with open_harness(store=store, actor=wider) as house:
        with pytest.raises(PermissionRefused):
            await house.manager.resume(snapshot)
        assert wider.log == []


async def test_it_goes_on_under_another_manager_by_its_id_alone(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore()
    async with open_harness(store=store) as house:
        run, snapshot = await paused(house, Use(output=7), node="here")
    async with open_harness(store=store) as house:
        result = await house.manager.resume(snapshot.id)
        assert (result.status, result.resumed_from) == (RunStatus.COMPLETED, run.id)
        assert result.session_id == run.session_id
        assert house.actor.log[0].provider_session_id == snapshot.provider_session_id
        assert result.usage.output == 0


async def test_a_snapshot_that_does_not_exist_is_unknown(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        with pytest.raises(UnknownId):
            await house.manager.resume("snp_nothing")


async def test_without_its_directory_it_cannot_go_on(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    async with open_harness() as house:
        place = tmp_path / "place"
        place.mkdir()
        session = await house.manager.open_session("actor", cwd=place)
        run = await session.submit(run_scripted(Hang()))
        await trio.sleep(1)
        snapshot = await run.pause()
        shutil.rmtree(place)
        with pytest.raises(NotResumable, match="place does not exist any more"):
            await house.manager.resume(snapshot)
        assert len((await house.store.runs()).rows) == 1


async def test_a_run_that_was_paused_within_a_tool_call_learns_of_it_when_it_resumes(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        _, snapshot = await paused(house, Tool(name="make", takes=100))
        result = await house.manager.resume(snapshot)
        assert "a tool call was running (make). Its outcome is unknown" in result.text
        assert result.text.endswith("Then continue.")
        _, snapshot = await paused(house, Tool(name="make", takes=100))
        result = await house.manager.resume(snapshot, "now make tea")
        assert result.text.endswith("before you repeat it. now make tea")


class ObedientAdapter(ProviderAdapter):
    """An adapter that ends its tool call as failed when interrupted, as real agents do."""

    name = "actor"
    capabilities = Capabilities(streaming=NATIVE, resume=NATIVE, tool_use=NATIVE, interrupt=NATIVE)
    said: ClassVar[list[str]] = []

    async def run(self, run: RunContext) -> None:
        self.said.append(run.prompt)
        await run.emit(RunStarted(provider_session_id="theirs"))
        if len(self.said) == 1:
            self.stopped = trio.Event()
            await run.emit(ToolCallStarted(tool_call_id="1", tool_name="make"))
            await self.stopped.wait()
            await run.emit(ToolCallFailed(tool_call_id="1", tool_name="make"))
        await run.finish(stop_reason="end_turn")

    async def interrupt(self, run: RunContext) -> None:
        await trio.lowlevel.checkpoint()
        self.stopped.set()


async def test_a_tool_call_counts_as_interrupted_though_its_agent_says_that_it_has_failed(
    autojump_clock: MockClock,
) -> None:
    ObedientAdapter.said.clear()
    async with open_manager(adapters={"actor": ObedientAdapter}) as manager:
        session = await manager.open_session("actor")
        run = await session.submit("make it")
        await trio.sleep(1)
        snapshot = await run.pause()
        [ended] = [each async for each in run if each.type == "run_paused"]
        assert isinstance(ended, RunPaused)
        assert ended.interrupted_tools == ("make",)
        await manager.resume(snapshot)
    assert "a tool call was running (make). Its outcome is unknown" in ObedientAdapter.said[1]


async def test_what_cannot_be_paused_says_why_and_runs_on(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(Wait(seconds=5), Say(text="well"), starts=False))
        await trio.sleep(1)
        with pytest.raises(NotPausable, match="has not named its session"):
            await run.pause()
        waiting = await session.submit("later")
        with pytest.raises(NotPausable):
            await waiting.pause()
        assert (await run.result()).text == "well"
        with pytest.raises(NotPausable, match="it is completed"):
            await run.pause()


async def test_a_provider_that_cannot_resume_cannot_be_paused(autojump_clock: MockClock) -> None:
    plain = scripted("actor", capabilities=Capabilities(streaming=NATIVE))
    async with open_harness(actor=plain) as house:
        run = await house.start(Wait(seconds=5))
        await trio.sleep(1)
        with pytest.raises(NotPausable, match="cannot resume"):
            await run.pause()
        assert (await run.result()).status is RunStatus.COMPLETED


async def test_what_is_being_cancelled_is_not_paused(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        run = await house.start(Deaf(seconds=3))
        await trio.sleep(1)
        run.cancel()
        with pytest.raises(NotPausable, match="ending already"):
            await run.pause()
        assert (await run.result()).reason is EndReason.USER
        assert await house.store.snapshots(run.session_id) == []


async def test_of_two_pauses_at_once_one_has_the_snapshot(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        run = await house.start(Hang())
        await trio.sleep(1)
        snapshots: list[Snapshot] = []
        refused: list[NotPausable] = []

        async def pause(node: str) -> None:
            try:
                snapshots.append(await run.pause(node=node))
            except NotPausable as error:
                refused.append(error)

        async with trio.open_nursery() as nursery:
            for node in "abc":
                nursery.start_soon(pause, node)
        assert (len(snapshots), len(refused)) == (1, 2)
        [kept] = await house.store.snapshots(run.session_id)
        assert kept.snapshot_id == snapshots[0].id


async def test_who_is_paused_and_says_done_is_paused(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(Hang(), interrupt="done"))
        await trio.sleep(1)
        snapshot = await run.pause()
        assert run.status is RunStatus.PAUSED
        assert (await house.manager.resume(snapshot)).status is RunStatus.COMPLETED


async def test_a_pause_that_comes_too_late_is_refused(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        run = await house.start(Finish(), Wait(seconds=3))
        await trio.sleep(1)
        with pytest.raises(NotPausable):
            await run.pause()
        assert (await run.result()).status is RunStatus.COMPLETED


async def test_a_session_that_is_named_before_the_run_starts_can_be_paused_or_not(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        named = Emit(event=ProviderSessionUpdated(provider_session_id="p-1"))
        run = await session.submit(run_scripted(named, Hang(), starts=False))
        await trio.sleep(1)
        snapshot = await run.pause()
        assert snapshot.provider_session_id == "p-1"
        assert run.status is RunStatus.PAUSED
        names = await types(run)
        assert names.index("run_started") < names.index("run_paused")


async def test_a_snapshot_says_where_its_run_worked(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        there = Emit(event=RunStarted(cwd=str(tmp_path), provider_session_id="p-1"))
        run = await session.submit(run_scripted(there, Hang(), starts=False))
        await trio.sleep(1)
        assert (await run.pause()).cwd == str(tmp_path)


async def test_what_is_no_json_is_refused_at_the_call(autojump_clock: MockClock) -> None:
    nonsense = object()
    async with open_harness() as house:
        run = await house.start(Wait(seconds=5))
        await trio.sleep(1)
        with pytest.raises((TypeError, ValueError)):
            await run.pause(state=nonsense)  # type: ignore[arg-type]
        assert (await run.result()).status is RunStatus.COMPLETED


async def test_one_snapshot_serves_more_than_once(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        run, snapshot = await paused(house)
        first = await house.manager.resume(snapshot, "one way")
        second = await house.manager.resume(snapshot, "another way")
        assert {first.text, second.text} == {"one way", "another way"}
        assert {first.resumed_from, second.resumed_from} == {run.id}


async def test_what_is_resumed_keeps_the_clocks_of_its_session(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    async with open_harness(store=store) as house:
        session = await house.manager.open_session("actor", clocks=Clocks(idle=7, model=20))
        run = await session.submit(run_scripted(Hang()), clocks=Clocks(model=10))
        await trio.sleep(1)
        snapshot = await run.pause(message=run_scripted(Hang()))
        result = await house.manager.resume(snapshot)
        assert (result.status, result.detail) == ("timed_out", "model clock: silent for 10 s")
    async with open_harness(store=store, clocks=Clocks(model=300, idle=300)) as house:
        result = await house.manager.resume(snapshot.id)
        assert (result.status, result.duration) == ("timed_out", 10)
        result = await house.manager.resume(snapshot.id, clocks=Clocks(model=0, deadline=30))
        assert (result.reason, result.duration) == ("deadline", 30)
        again = await house.manager.session(snapshot.session_id)
        ended = await (await again.submit(run_scripted(TurnEnd(), Hang()))).result()
        assert (ended.reason, ended.duration) == ("idle", 7)


async def test_what_is_resumed_keeps_the_budget_of_its_session(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    async with open_harness(store=store) as house:
        session = await house.manager.open_session("actor", budget=Budget(tokens=100))
        run = await session.submit(run_scripted(Hang()), budget=Budget(usd=1))
        await trio.sleep(1)
        snapshot = await run.pause()
    too_many = run_scripted(Use(output=101), Wait(seconds=1))
    async with open_harness(store=store, budget=Budget(tokens=5000, usd=5000)) as house:
        result = await house.manager.resume(snapshot.id, too_many)
        assert (result.status, result.reason) == ("failed", "budget")
        with pytest.raises(BudgetExhausted):
            await house.manager.resume(snapshot.id, "x")


async def test_what_is_resumed_keeps_its_own_budget(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    async with open_harness(store=store) as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(Hang()), budget=Budget(usd=1))
        await trio.sleep(1)
        snapshot = await run.pause()
    async with open_harness(store=store, budget=Budget(tokens=5000, usd=5000)) as house:
        too_dear = run_scripted(Use(output=1, usd=1.5), Wait(seconds=1))
        assert (await house.manager.resume(snapshot.id, too_dear)).reason == "budget"
        lavish = await house.manager.resume(snapshot.id, too_dear, budget=Budget(usd=2))
        assert lavish.status is RunStatus.COMPLETED
        again = await house.manager.session(snapshot.session_id)
        assert (await (await again.submit(too_dear)).result()).status is RunStatus.COMPLETED


async def test_what_is_resumed_is_asked_for_the_same_again(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    store = MemoryStore()
    strict = scripted("actor", capabilities=structs.replace(ALL_IT_DOES, system_prompt=NATIVE))
    strict.serves = frozenset({"tools_allowed", "tools_denied", "directories"})
    async with open_harness(store=store, actor=strict) as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(
            run_scripted(Hang()),
            system_prompt="be brief",
            require={"streaming"},
            prefer=["mcp"],
            tools_allowed=["read"],
            tools_denied=["rm"],
            directories=[tmp_path.as_posix()],
            schema={"type": "object"},
            env={"TOKEN": "tk-5f0c91"},
        )
        await trio.sleep(1)
        snapshot = await run.pause()
        negotiation = (await run.result()).negotiation
    asked = structs.asdict(read_resume_spec(snapshot.asked))
    assert asked["tools_denied"] == ("rm",)
    assert asked["schema"] == {"type": "object"}
    assert b"tk-5f0c91" not in (await store.snapshots(snapshot.session_id))[0].body
    async with open_harness(store=store, actor=strict) as house:
        result = await (await house.manager.submit_resume(snapshot.id)).result()
        assert result.negotiation == negotiation
    unable = scripted("actor", capabilities=strict.capabilities)
    async with open_harness(store=store, actor=unable) as house:
        with pytest.raises(RunRequestUnsupported, match="tools_allowed"):
            await house.manager.resume(snapshot.id)
        again = await house.manager.resume(
            snapshot.id, tools_allowed=None, tools_denied=(), directories=()
        )
        assert again.status is RunStatus.COMPLETED
