"""A command starts after its start is stored, so that no crash makes it start twice."""

import errno
from collections.abc import Sequence

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from sessionmgr.manager import Clocks, open_manager
from sessionmgr.model import UNSUPPORTED, RunStatus, ToolCallFailed
from sessionmgr.process import Command, SpawnFailed
from sessionmgr.process.launcher import ChildTree
from sessionmgr.store import Append, AppendResult
from sessionmgr.testing.faulty_store import FaultyStore
from sessionmgr_adapters.shell import ShellAdapter


class RecordingLauncher:
    """Launcher that starts nothing, and records when it is called."""

    def __init__(self) -> None:
        self.asked_at: list[float] = []

    async def spawn(self, command: Command) -> ChildTree:
        await trio.lowlevel.checkpoint()
        self.asked_at.append(trio.current_time())
        raise SpawnFailed("nothing is started here", command.argv[0], errno.EPERM)


class SlowStore(FaultyStore):
    """Store that takes ten seconds to store the start of a tool, and records when that is done."""

    def __init__(self) -> None:
        super().__init__()
        self.delay = lambda append: 10.0 if _calls_a_tool(append) else 0.0
        self.stored_at: list[float] = []

    async def append_all(self, appends: Sequence[Append]) -> Sequence[AppendResult | Exception]:
        outcomes = await super().append_all(appends)
        self.stored_at += [trio.current_time() for each in appends if _calls_a_tool(each)]
        return outcomes


def _calls_a_tool(append: Append) -> bool:
    return any(row.type == "tool_call_started" for row in append.rows)


async def test_a_command_begins_when_it_is_on_record(autojump_clock: MockClock) -> None:
    launcher, store = RecordingLauncher(), SlowStore()
    async with (
        open_manager(store=store, adapters={"shell": ShellAdapter}, launcher=launcher) as manager,
        (await manager.open_session("shell")).start("touch it") as run,
    ):
        assert (await run.result()).status is RunStatus.FAILED
    assert (len(launcher.asked_at), len(store.stored_at)) == (1, 1)
    assert launcher.asked_at[0] >= store.stored_at[0]


async def test_a_command_that_is_cancelled_before_it_is_on_record_never_begins(
    autojump_clock: MockClock,
) -> None:
    launcher, store = RecordingLauncher(), SlowStore()
    async with (
        open_manager(store=store, adapters={"shell": ShellAdapter}, launcher=launcher) as manager,
        (await manager.open_session("shell")).start("touch it") as run,
    ):
        await trio.sleep(8)
        run.cancel("not this one")
        assert (await run.result()).status is RunStatus.CANCELLED
    assert launcher.asked_at == []


class Uninterruptible(ShellAdapter):
    """Adapter whose runs are killed as soon as they are cancelled."""

    capabilities = replace(ShellAdapter.capabilities, interrupt=UNSUPPORTED)


@pytest.mark.parametrize(
    ("adapter", "grace"),
    [(Uninterruptible, 5.0), (ShellAdapter, 1.0), (ShellAdapter, 5.0)],
    ids=["at once", "before it is on record", "never"],
)
async def test_a_command_that_never_begins_has_failed_whenever_its_run_is_cut(
    autojump_clock: MockClock, adapter: type[ShellAdapter], grace: float
) -> None:
    async with (
        open_manager(
            store=SlowStore(),
            adapters={"shell": adapter},
            launcher=RecordingLauncher(),
            clocks=Clocks(close=grace),
        ) as manager,
        (await manager.open_session("shell")).start("touch it") as run,
    ):
        await trio.sleep(8)
        run.cancel()
        said = [each.tool_output async for each in run if isinstance(each, ToolCallFailed)]
    assert said == ["it was not started"]
