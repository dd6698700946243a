"""A command begins when it is on record, so that no crash makes it begin twice."""

import errno
from collections.abc import Sequence

import trio
from trio.testing import MockClock

from sessionmgr.errors import SpawnFailed
from sessionmgr.manager import open_manager
from sessionmgr.model import RunStatus
from sessionmgr.process import Command
from sessionmgr.process.launcher import ChildTree
from sessionmgr.store import Append, Appended
from sessionmgr.testing.faulty_store import FaultyStore
from sessionmgr_adapters.shell import ShellAdapter


class NotedLauncher:
    """Starts nothing, and notes when it is to start something."""

    def __init__(self) -> None:
        self.asked_at: list[float] = []

    async def spawn(self, command: Command) -> ChildTree:
        await trio.lowlevel.checkpoint()
        self.asked_at.append(trio.current_time())
        raise SpawnFailed("nothing is started here", command.argv[0], errno.EPERM)


class SlowStore(FaultyStore):
    """Takes ten seconds to store that a tool is called, and notes when that is done."""

    def __init__(self) -> None:
        super().__init__()
        self.delay = lambda append: 10.0 if _calls_a_tool(append) else 0.0
        self.stored_at: list[float] = []

    async def append_all(self, appends: Sequence[Append]) -> Sequence[Appended | Exception]:
        outcomes = await super().append_all(appends)
        self.stored_at += [trio.current_time() for each in appends if _calls_a_tool(each)]
        return outcomes


def _calls_a_tool(append: Append) -> bool:
    return any(row.type == "tool_call_started" for row in append.rows)


async def test_a_command_begins_when_it_is_on_record(autojump_clock: MockClock) -> None:
    launcher, store = NotedLauncher(), SlowStore()
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
    launcher, store = NotedLauncher(), SlowStore()
    async with (
        open_manager(store=store, adapters={"shell": ShellAdapter}, launcher=launcher) as manager,
        (await manager.open_session("shell")).start("touch it") as run,
    ):
        await trio.sleep(8)
        run.cancel("not this one")
        assert (await run.result()).status is RunStatus.CANCELLED
    assert launcher.asked_at == []
