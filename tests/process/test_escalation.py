"""Escalation: each step, its grace period, and that nothing interrupts it."""

import signal
from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.testing import MockClock

from sessionmgr.process.command import Command
from sessionmgr.process.escalation import Escalation, end_tree, open_tree
from sessionmgr.process.exit_report import EmptyProof, ExitReport, ProgramExit
from sessionmgr.process.exit_state import ExitState
from sessionmgr.process.launcher import ChildTree, Launcher

ESCALATION = Escalation(polite=3.0, term=5.0, linger=0.5, kill=7.0)
NEVER = "never"
COMMAND = Command(argv=("x",), cwd="/", env={})


class FakeTree:
    """Tree that ends at a given step, and records the time of each step."""

    pid = 1
    id = "imaginary"
    stdin = None

    def __init__(self, ends_at: str, *, leaves: bool = False) -> None:
        self.stdout: trio.abc.ReceiveStream = trio.testing.memory_stream_one_way_pair()[1]
        self.stderr: trio.abc.ReceiveStream = trio.testing.memory_stream_one_way_pair()[1]
        self.ends_at = ends_at
        self.leaves = leaves
        self.exit_state = ExitState()
        self.steps: list[tuple[str, float]] = []
        self.begin = trio.current_time()

    def step(self, name: str) -> None:
        self.steps.append((name, trio.current_time() - self.begin))
        if name in (self.ends_at, "kill") and self.ends_at != NEVER:
            if self.exit_state.exit is None:
                self.exit_state.set_exited(0, ours=True)
            if not self.leaves or name == "kill":
                self.exit_state.set_over(EmptyProof.NO_CHILD)

    @property
    def is_over(self) -> bool:
        return self.exit_state.is_over

    async def ask(self, _tree: ChildTree) -> None:
        await trio.lowlevel.checkpoint()
        self.step("polite")

    def signal(self, number: signal.Signals) -> None:
        if self.exit_state.exit is None:
            self.step(number.name)

    def kill(self) -> None:
        if not self.exit_state.is_over:
            self.exit_state.set_forced(-1)
            self.step("kill")

    async def wait_exit(self) -> ProgramExit:
        return await self.exit_state.wait_exit()

    async def wait_empty(self) -> ExitReport:
        return await self.exit_state.wait_over()

    async def abandon(self) -> ExitReport:
        await trio.lowlevel.checkpoint()
        self.step("abandon")
        return self.exit_state.report()

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()
        self.step("close")


class FakeLauncher:
    def __init__(self, tree: FakeTree) -> None:
        self.tree = tree

    async def spawn(self, command: Command) -> ChildTree:
        await trio.lowlevel.checkpoint()
        assert command is COMMAND
        return self.tree


@pytest.mark.parametrize(
    ("ends_at", "leaves", "steps"),
    [
        ("polite", False, [("polite", 0)]),
        ("polite", True, [("polite", 0), ("kill", 0.5)]),
        ("SIGTERM", False, [("polite", 0), ("SIGTERM", 3)]),
        ("SIGTERM", True, [("polite", 0), ("SIGTERM", 3), ("kill", 3.5)]),
        ("kill", False, [("polite", 0), ("SIGTERM", 3), ("kill", 8)]),
        (NEVER, False, [("polite", 0), ("SIGTERM", 3), ("kill", 8), ("abandon", 15)]),
    ],
)
async def test_each_step_has_its_grace_and_the_next_comes_only_after_it(
    autojump_clock: MockClock, ends_at: str, leaves: bool, steps: list[tuple[str, float]]
) -> None:
    tree = FakeTree(ends_at, leaves=leaves)
    report = await end_tree(tree, ESCALATION, tree.ask)
    assert tree.steps == steps
    assert report.forced == ("kill" in dict(steps))
    assert (report.emptied is EmptyProof.UNPROVED) == (ends_at == NEVER)


async def test_without_a_polite_way_the_first_step_is_term(autojump_clock: MockClock) -> None:
    tree = FakeTree("SIGTERM")
    await end_tree(tree, ESCALATION)
    assert tree.steps == [("SIGTERM", 0)]


async def hang(_tree: ChildTree) -> None:
    await trio.sleep_forever()


async def fail(_tree: ChildTree) -> None:
    raise ValueError("it would not listen")


@pytest.mark.parametrize("polite", [hang, fail])
async def test_a_polite_end_that_hangs_or_fails_takes_its_grace_and_no_more(
    autojump_clock: MockClock, polite: Callable[[ChildTree], Awaitable[None]]
) -> None:
    tree = FakeTree("SIGTERM")
    await end_tree(tree, ESCALATION, polite)
    assert tree.steps == [("SIGTERM", 3)]


async def test_a_polite_end_need_not_return_when_the_child_is_gone(
    autojump_clock: MockClock,
) -> None:
    tree = FakeTree("polite")

    async def ask_and_hang(tree_: ChildTree) -> None:
        await tree.ask(tree_)
        await trio.sleep_forever()

    await end_tree(tree, ESCALATION, ask_and_hang)
    assert trio.current_time() == tree.begin


@pytest.mark.parametrize("ends_at", ["polite", "SIGTERM", "kill", NEVER])
async def test_a_caller_that_is_cancelled_walks_all_of_it_and_is_cancelled_then(
    autojump_clock: MockClock, ends_at: str
) -> None:
    tree = FakeTree(ends_at)
    with trio.CancelScope() as scope:
        async with open_tree(FakeLauncher(tree), COMMAND, escalation=ESCALATION, polite=tree.ask):
            scope.cancel()
            await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    names = [name for name, _ in tree.steps]
    assert (names[0], names[-1]) == ("polite", "close")
    assert tree.exit_state.is_over or ends_at == NEVER


async def test_an_error_in_the_block_comes_out_bare_after_the_end(
    autojump_clock: MockClock,
) -> None:
    tree = FakeTree("kill")
    with pytest.raises(ZeroDivisionError):
        async with open_tree(FakeLauncher(tree), COMMAND, escalation=ESCALATION):
            _ = 1 / 0
    assert [name for name, _ in tree.steps] == ["SIGTERM", "kill", "close"]


async def test_the_imaginary_fits() -> None:
    tree: ChildTree = FakeTree(NEVER)
    launcher: Launcher = FakeLauncher(FakeTree(NEVER))
    assert (await launcher.spawn(COMMAND)).pid == tree.pid
