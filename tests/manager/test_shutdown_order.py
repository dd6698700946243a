"""Producers of events end before their recorder, and the launcher of children ends last."""

from collections.abc import Sequence

import trio
from trio.lowlevel import Task
from trio.testing import MockClock

from sessionmgr.adapter import ProviderAdapter, RunContext
from sessionmgr.model import RunStarted, RunStatus
from sessionmgr.otp import child
from sessionmgr.store.rows import Append, AppendResult
from sessionmgr.testing.faulty_store import FaultyStore
from tests.manager.harness import open_harness


class StopOrder(trio.abc.Instrument):
    """The names of tasks in the order of their ends, with the commits of the store."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    def task_exited(self, task: Task) -> None:
        self.ended.append(task.name)


class ConnectedAdapter(ProviderAdapter):
    """An adapter that starts a connection, which outlives its run."""

    name = "connected"

    async def run(self, run: RunContext) -> None:
        await run.connections.start_child(child(trio.sleep_forever, id="connection"))
        await run.emit(RunStarted(provider_session_id="p"))
        await trio.sleep_forever()


async def test_a_manager_is_stopped_in_the_reverse_of_what_depends_on_what(
    autojump_clock: MockClock,
) -> None:
    order = StopOrder()

    class Noting(FaultyStore):
        async def append_all(self, appends: Sequence[Append]) -> Sequence[AppendResult | Exception]:
            taken = await super().append_all(appends)
            types = [row.type for append in appends for row in append.rows]
            order.ended += [each for each in types if each == "run_cancelled"]
            return taken

    async with open_harness(store=Noting(), others={"connected": ConnectedAdapter}) as house:
        session = await house.manager.open_session("connected")
        run = await session.submit("hello")
        await trio.sleep(1)
        trio.lowlevel.add_instrument(order)
    trio.lowlevel.remove_instrument(order)
    assert run.status is RunStatus.CANCELLED
    expected = [
        "run_adapter-1",
        "run_cancelled",
        "gate",
        "runs",
        "connection",
        "connections",
        "adapter",
        "providers",
        "sessions",
        "reconciler",
        "writer",
        "store",
        "launcher",
    ]
    assert [each for each in order.ended if each in expected] == expected
