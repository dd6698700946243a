"""A crash of any node of the tree, at each of its awaits, costs what its row in the table says.

One scene has work for all of them: approvals, messages, a timeout, requests from other processes, a
recorder that crashes, leases that must be renewed. Each node crashes at the first step of its
tasks, then at the second, and so on, until the scene is over before; and where it waits, at some
moments.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import msgspec
import pytest
import trio
from trio.testing import MockClock

from sessionmgr.adapter import Allow, ApprovalRequest, Decision, StartRefused
from sessionmgr.manager import Clocks, RunHandle
from sessionmgr.model import TERMINAL, PlanUpdated, encode_json
from sessionmgr.otp.child_task import ChildTask
from sessionmgr.store import Request
from sessionmgr.testing.faulty_store import FaultyStore
from sessionmgr.testing.scripted_provider import (
    Ask,
    Emit,
    Finish,
    Hang,
    Hear,
    Say,
    Step,
    Tool,
    TurnEnd,
    Use,
    scripted,
)
from tests.manager.harness import ManagerHarness, open_harness, run_scripted, types
from tests.manager.node_crash import NodeCrash, NodeCrasher, crash_at_wait

Fate = tuple[str, str | None, str | None]

DONE: Final[Fate] = ("completed", None, None)
ADAPTER: Final[Fate] = ("failed", "adapter_crashed", None)
MANAGER: Final[Fate] = ("failed", "manager_crashed", None)
CANCELLED: Final[Fate] = ("cancelled", None, "user")
SHUTDOWN: Final[Fate] = ("cancelled", None, "shutdown")

PARTS: Final[dict[str, tuple[str, Fate, tuple[Step, ...]]]] = {
    "talk": ("actor", DONE, (Ask(tool="rm"), Hear(), Use(output=5), TurnEnd(), Finish())),
    "silent": ("actor", ("timed_out", "stalled", "idle"), (Say(text="x"), Hang())),
    "long": ("other", DONE, (Tool(name="make", takes=65), Finish())),
    "unwanted": ("other", CANCELLED, (Hang(),)),
    "doomed": ("other", MANAGER, (Emit(event=PlanUpdated(entries=())), Hang())),
}
"""Provider, the outcome without a crash, and the script."""


def child_named(*names: str) -> Callable[[ChildTask], bool]:
    return lambda life: life.name in names


def run_of(provider: str) -> Callable[[ChildTask], bool]:
    return lambda life: life.name.startswith(f"{provider}/runs/")


def task_of_a_recorder(life: ChildTask) -> bool:
    """Return whether a child is a task of a recorder: for a decision or a message."""
    return life.name.startswith("manager/sessions/tasks/_run")


ALL: Final = frozenset(PARTS)
NODES: Final[dict[str, tuple[Callable[[ChildTask], bool], Fate | None, frozenset[str]]]] = {
    "launcher": (child_named("manager/launcher"), SHUTDOWN, ALL),
    "store": (child_named("manager/store/writer"), None, frozenset()),
    "reconciler": (child_named("manager/services/reconciler"), None, frozenset()),
    "clocks": (child_named("manager/services/clocks"), None, frozenset()),
    "leases": (child_named("manager/services/leases"), None, frozenset()),
    "requests": (child_named("manager/services/requests"), None, frozenset()),
    "gate": (child_named("manager/gate"), None, frozenset()),
    "committer": (child_named("manager/sessions/committer"), None, frozenset()),
    "recorder": (task_of_a_recorder, MANAGER, frozenset({"talk"})),
    "branch": (child_named("manager/providers/run-1"), ADAPTER, frozenset({"talk", "silent"})),
    "adapter": (child_named("actor/adapter"), ADAPTER, frozenset({"talk", "silent"})),
    "run": (run_of("actor"), ADAPTER, frozenset({"talk", "silent"})),
}
"""The child, the outcome of runs after its crash, and the affected runs."""


@dataclass
class NodeScene:
    house: ManagerHarness
    runs: dict[str, RunHandle] = field(default_factory=dict[str, RunHandle])
    read: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    given_up: bool = False
    """Whether the talk was cancelled, because the delivery of the message is unknown."""

    async def play(self) -> None:
        for part in PARTS:  # one by one, so that the first recorder is known
            await self._begin(part)
        async with trio.open_nursery() as nursery:
            for part in self.runs:
                nursery.start_soon(self._see_through, part)

    async def _begin(self, part: str) -> None:
        provider, _, steps = PARTS[part]
        clocks = Clocks(model=10 if part == "silent" else None)
        session = await self.house.manager.open_session(
            provider, clocks=clocks, approve=self._approve
        )
        with suppress(StartRefused):  # then nothing was started or stored
            self.runs[part] = await session.submit(run_scripted(*steps))

    async def _see_through(self, part: str) -> None:
        run = self.runs[part]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._read, part)
            await trio.sleep(1)
            if part == "talk":
                await self._append(run)
            if part == "unwanted":
                await self._ask_to_cancel(run)
            await run.result()

    async def _approve(self, _: ApprovalRequest) -> Decision:
        await trio.sleep(0.5)
        return Allow()

    async def _append(self, run: RunHandle) -> None:
        with suppress(StartRefused):
            follow_up = await run.append("the message")
            if follow_up.state == "unknown":  # the agent may wait for it forever
                self.given_up = run.cancel()
            await follow_up.run.result()

    async def _ask_to_cancel(self, run: RunHandle) -> None:
        """Have another process cancel the run; twice, in case the first request fails."""
        for number in range(2):
            body = encode_json({"detail": "from afar"})
            request = Request(
                request_id=f"req-{number}", kind="cancel", target=run.id, at=0, body=body
            )
            await self.house.store.submit(request)
            with trio.move_on_after(90):
                answer = msgspec.json.decode(await self.house.store.wait_result(request.request_id))
                if answer["ok"]:
                    return

    async def _read(self, part: str) -> None:
        self.read[part] = []
        self.read[part] = await types(self.runs[part])


def run_scene(node: str, crasher: NodeCrasher | None = None, moment: float = 0.0) -> bool:
    """Play the scene with a crash, by the crasher or at that moment; return whether it happened."""
    of, fate, whose = NODES[node]
    struck: list[bool] = []

    async def main() -> None:
        store = FaultyStore()
        store.raises.append(("plan_updated", NodeCrash()))
        store.delay = lambda append: float(any(row.type == "run_failed" for row in append.rows))
        others = {"other": scripted("other")}
        with trio.fail_after(1000):
            async with open_harness(store=store, others=others) as house:
                scene = NodeScene(house)
                if crasher is not None:
                    trio.lowlevel.add_instrument(crasher)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(scene.play)
                    if crasher is None:
                        await trio.sleep(moment)
                        struck.append(crash_at_wait(of))
                if crasher is not None:
                    struck.append(crasher.struck)
                    crasher.over = True
                # The manager continues normally.
                await trio.sleep(10)
                assert (await house.result(Say(text="next"))).text == "next"
        await verify(scene, fate, whose)

    trio.run(main, clock=MockClock(autojump_threshold=0))
    return struck[0]


async def verify(scene: NodeScene, fate: Fate | None, whose: frozenset[str]) -> None:
    for part, run in scene.runs.items():
        result = await run.result()
        assert result.status in TERMINAL, part
        kind = None if result.failure is None else str(result.failure.kind)
        came: Fate = (str(result.status), kind, result.reason)
        planned = CANCELLED if part == "talk" and scene.given_up else PARTS[part][1]
        allowed = {planned, fate} if part in whose else {planned}
        assert came in allowed, (part, result)
        assert (await scene.house.store.run(run.id)).status == result.status
        assert scene.read[part][-1] == f"run_{result.status}", part


@pytest.mark.parametrize("node", NODES)
def test_a_crash_at_any_await_of_a_node_costs_what_its_row_says(node: str) -> None:
    for nth in range(1, 1000):
        try:
            if not run_scene(node, NodeCrasher(NODES[node][0], nth)):
                break
        except BaseException as error:
            error.add_note(f"{node} crashed at its step {nth}")
            raise
    else:
        pytest.fail("the scene has no end")


@pytest.mark.parametrize("node", [node for node in NODES if node not in {"recorder", "run"}])
@pytest.mark.parametrize("moment", [0.2, 0.7, 1.2, 4.5, 40])
def test_a_crash_of_a_node_where_it_waits_costs_what_its_row_says(node: str, moment: float) -> None:
    assert run_scene(node, moment=moment)
