"""Small random scenarios: each run ends once, and all readers see the same."""

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec
import trio
from hypothesis import Phase, given, settings, strategies as st

from sessionmgr.adapter import Allow, ApprovalRequest, Decision, Deny, StartRefused
from sessionmgr.manager import Clocks, FollowUp, NotPausable, NotResumable, RunHandle, SessionHandle
from sessionmgr.model import TERMINAL, Snapshot
from sessionmgr.store import StoreClosed
from sessionmgr.testing.faulty_store import ANY, FaultyStore
from sessionmgr.testing.scripted_provider import Script, write_script
from sessionmgr.testing.seeded_schedule import run_scheduled
from sessionmgr.testing.strategies import scripts
from sessionmgr.testing.strategies.script import MOMENTS
from tests.manager.harness import ManagerHarness, open_harness, stored

SCRIPTS = scripts(tools=["yes", "no", "slow", "broken", "stop"])


class ModelAction(msgspec.Struct, frozen=True):
    """An action of the caller on a run or a session, some time after the action before."""

    after: float
    what: str
    which: int
    script: Script


ACTS = st.builds(
    ModelAction,
    after=MOMENTS,
    what=st.sampled_from(
        ["submit"] * 4
        + ["append"] * 3
        + ["cancel", "cancel session", "pause", "resume", "block"]
        + ["crash keeper", "fail store", "close session"]
    ),
    which=st.integers(0, 9),
    script=SCRIPTS,
)


async def approve(request: ApprovalRequest) -> Decision:
    match request.tool_name:
        case "yes":
            await trio.lowlevel.checkpoint()
            return Allow()
        case "slow":
            await trio.sleep(30)
            return Allow()
        case "broken":
            raise LookupError("nobody knows")
        case "stop":
            return Deny(stop=True)
        case _:
            return Deny()


@dataclass
class RunLifeModel:
    house: ManagerHarness
    store: FaultyStore
    sessions: list[SessionHandle]
    runs: list[RunHandle] = field(default_factory=list[RunHandle])
    snapshots: list[Snapshot] = field(default_factory=list[Snapshot])
    appended: dict[str, FollowUp] = field(default_factory=dict[str, FollowUp])
    seen: dict[str, list[int]] = field(default_factory=dict[str, list[int]])

    async def act(self, act: ModelAction, number: int) -> None:
        session = self.sessions[act.which % len(self.sessions)]
        run = self.runs[act.which % len(self.runs)] if self.runs else None
        with suppress(StartRefused, NotPausable, NotResumable, StoreClosed):
            await self._act(act, session, run, number)

    async def _act(
        self, act: ModelAction, session: SessionHandle, run: RunHandle | None, number: int
    ) -> None:
        match act.what:
            case "submit":
                self.runs.append(await session.submit(write_script(act.script)))
            case "block":
                async with session.start(write_script(act.script)) as started:
                    self.runs.append(started)
                    await trio.sleep(act.after)
            case "append" if run:
                content = f"follow-up {number}"
                self.appended[content] = await run.append(content)
                self.runs.append(self.appended[content].run)
            case "cancel" if run:
                run.cancel()
            case "cancel session":
                await session.cancel()
            case "pause" if run:
                self.snapshots.append(await run.pause())
            case "resume" if self.snapshots:
                snapshot = self.snapshots[act.which % len(self.snapshots)]
                self.runs.append(await self.house.manager.submit_resume(snapshot))
            case "crash keeper":
                self.store.raises.append((ANY, RuntimeError("as planned")))
                await trio.lowlevel.checkpoint()
            case "fail store":
                self.store.closed = True
                await trio.sleep(10)
                self.store.closed = False
            case "close session" if any(each.session_id == session.id for each in self.runs):
                await session.close()
            case _:
                await trio.lowlevel.checkpoint()

    async def read(self, session: SessionHandle, pause: float) -> None:
        numbers = self.seen.setdefault(session.id, [])
        async for event in self.house.manager.subscribe(session.id):
            numbers.append(event.seq)
            await trio.sleep(pause)


async def live(acts: list[ModelAction], delay: float, *, patient: bool) -> None:
    store = FaultyStore()
    store.delay = lambda _: delay
    clocks = Clocks(start=20, model=20, idle=20, drain=20, tool=20, approval=10, close=2, store=60)
    async with open_harness(store=store, clocks=clocks) as house:
        sessions = [
            await house.manager.open_session("actor", approve=approve, cwd="/") for _ in range(2)
        ]
        life = RunLifeModel(house, store, sessions)
        async with trio.open_nursery() as readers:
            for session in sessions:
                readers.start_soon(life.read, session, 0.01)
            async with trio.open_nursery() as nursery:
                for number, act in enumerate(acts):
                    await trio.sleep(act.after)
                    nursery.start_soon(life.act, act, number)
            if patient:
                for run in life.runs:
                    with trio.fail_after(2000):
                        await run.result()
                await trio.sleep(30)
            readers.cancel_scope.cancel()
    for run in life.runs:
        assert run.status in TERMINAL
        assert (await store.run(run.id)).status == run.status
    if patient:
        for session in sessions:
            if life.seen[session.id]:
                total = len(await stored(house, session.id))
                assert life.seen[session.id] == list(range(1, total + 1))
    times = Counter(house.saw("append") + house.saw("prompt"))
    assert all(times[content] <= 1 for content in life.appended)


# Explaining a failure takes longer than finding it: each scenario is traced line by line.
@settings(phases=set(Phase) - {Phase.explain})
@given(
    acts=st.lists(ACTS, max_size=8),
    delay=st.sampled_from([0.0, 0.05]),
    patient=st.booleans(),
    seed=st.integers(0, 9),
)
def test_whatever_happens_each_run_ends_once_and_everybody_sees_the_same(
    acts: list[ModelAction], delay: float, patient: bool, seed: int
) -> None:
    async def main() -> None:
        await live(acts, delay, patient=patient)

    run_scheduled(main, seed)
