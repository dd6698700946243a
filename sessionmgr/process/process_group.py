"""Launcher without a spawner: process groups, for systems that have no subreapers.

Compared with trees that have reapers, this lacks three guarantees. A process that creates its own
session or group is not reached, and its end is not proved. `kill -9` of the owner leaves its
children running. A group is killed by number, which in the instant after its last process ended
could already belong to another group.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
from functools import partial
from typing import TYPE_CHECKING, Final

import trio
from trio.lowlevel import enable_ki_protection

from sessionmgr.process import tree_tag
from sessionmgr.process.descriptor_limits import DescriptorBudget
from sessionmgr.process.errors import LauncherFailed
from sessionmgr.process.exit_report import EmptyProof, LeftRunning
from sessionmgr.process.exit_state import ExitState
from sessionmgr.process.program import NotStartedError, find_program
from sessionmgr.process.resource_shortage import retry_on_shortage
from sessionmgr.process.spawn_errors import spawn_error
from sessionmgr.process.start_cancelled import is_start_cancelled

if TYPE_CHECKING:
    from sessionmgr.process.command import Command
    from sessionmgr.process.exit_report import ExitReport, ProgramExit
    from sessionmgr.process.launcher_registry import BootReport

KILL_WITHIN: Final = 5.0
_LOOK_FIRST: Final = 0.002
_LOOK_AT_LAST: Final = 0.1


class ProcessGroupTree:
    """Child and its process group. It fits `ChildTree`."""

    def __init__(self, tag: int, process: trio.Process, launcher: ProcessGroupLauncher) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self.tag = tag
        self._process = process
        self._launcher = launcher
        self._sent: set[int] = set()
        self._pending = {"closed", "reaped"}
        self.exit_state = ExitState()
        self.stdin = process.stdin
        self.stdout: trio.abc.ReceiveStream = process.stdout
        self.stderr: trio.abc.ReceiveStream = process.stderr

    def __repr__(self) -> str:
        return f"<DirectTree {self.id}: pid {self.pid}>"

    @property
    def pid(self) -> int:
        """Process id of the program and its group."""
        return self._process.pid

    @property
    def id(self) -> str:
        """Id of the tree, which the environment of its processes contains unless they clear it."""
        return tree_tag.format_tag(self.tag)

    @property
    def is_over(self) -> bool:
        """Whether the tree is known to be over."""
        return self.exit_state.is_over

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program alone; do nothing if it has ended."""
        if self._process.poll() is not None:
            return
        if number in (signal.SIGKILL, signal.SIGTERM):
            self.exit_state.set_forced(self._stdout_number())
        with contextlib.suppress(PermissionError):
            self._process.send_signal(number)
            self._sent.add(number)

    def kill(self) -> None:
        """Begin to kill the whole group."""
        if self.exit_state.is_over or not _exists(self.pid):
            return
        if self._process.poll() is not None:
            self.set_exited(self._process.poll() or 0)
        self.exit_state.set_forced(self._stdout_number())
        self._sent.add(signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def _stdout_number(self) -> int:
        stream = self._process.stdout
        return stream.fileno() if isinstance(stream, trio.lowlevel.FdStream) else -1

    async def wait_exit(self) -> ProgramExit:
        """Wait for the end of the program."""
        return await self.exit_state.wait_exit()

    async def wait_empty(self) -> ExitReport:
        """Wait until its group is gone."""
        return await self.exit_state.wait_over()

    async def abandon(self) -> ExitReport:
        """Stop waiting for the end of the group."""
        await trio.lowlevel.checkpoint()
        if not self.exit_state.is_over:
            group = LeftRunning(pid=self.pid, name="process group", uid=-1)
            self.exit_state.set_over(EmptyProof.UNPROVED, (group,))
        return self.exit_state.report()

    async def aclose(self) -> None:
        """Close the pipes, and kill the group if it lives."""
        self.kill()
        if self.stdin is not None:
            await self.stdin.aclose()
        await self.stdout.aclose()
        await self.stderr.aclose()
        self._forget("closed")

    def _forget(self, done: str) -> None:
        """Remove it from the launcher, once it is both closed and reaped."""
        self._pending.discard(done)
        if not self._pending:
            self._launcher.trees.pop(self.tag, None)

    def set_exited(self, code: int) -> None:
        """Record the program's end."""
        if self.exit_state.exit is None:
            self.exit_state.set_exited(code, ours=-code in self._sent)

    @enable_ki_protection
    async def wait_and_reap(self) -> None:
        """Reap the program, and wait until its group is gone."""
        self.set_exited(await self._process.wait())
        pause = _LOOK_FIRST
        while _exists(self.pid) and not self.exit_state.is_over:
            await trio.sleep(pause)
            pause = min(pause * 2, _LOOK_AT_LAST)
        self.exit_state.set_over(EmptyProof.GROUP_GONE)
        self._forget("reaped")


class ProcessGroupLauncher:
    """Launcher that starts children as process groups. It fits `Launcher`."""

    needs_registry: Final = True
    """Only the next start finds what remains after the owner is killed."""

    def __init__(self, number: int, boot: BootReport) -> None:
        self.number = number
        self.boot = boot
        self.proved = False
        """Whether all groups were gone when it closed."""
        self._descriptors = DescriptorBudget()
        self.trees: dict[int, ProcessGroupTree] = {}
        self._numbers = itertools.count(1)
        self._nursery: trio.Nursery | None = None
        self._closing = trio.Event()

    async def spawn(self, command: Command) -> ProcessGroupTree:
        """Start a child; see `Launcher`."""
        if self._closing.is_set() or self._nursery is None:
            raise LauncherFailed("the launcher is closed")
        number = tree_tag.make_tag(self.number, next(self._numbers) % tree_tag.TREES)
        around = tree_tag.nested_value(os.environ.get(tree_tag.VARIABLE), number)
        process = await retry_on_shortage(partial(self._start, command, around), self._has_children)
        if self._closing.is_set():
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()
            raise LauncherFailed("the launcher was closed during the start")
        tree = ProcessGroupTree(number, process, self)
        self.trees[number] = tree
        self._nursery.start_soon(tree.wait_and_reap)
        try:
            await trio.lowlevel.checkpoint()
        except BaseException:
            with trio.CancelScope(shield=True):
                tree.kill()
                with trio.move_on_after(KILL_WITHIN):
                    await tree.wait_empty()
                await tree.aclose()
            raise
        return tree

    def _has_children(self) -> bool:
        return bool(self.trees) or self._descriptors.has_reservations

    async def _start(self, command: Command, around: str) -> trio.Process:
        with self._descriptors.reserve():
            return await _start(command, around)

    @enable_ki_protection
    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve trees until `close`."""
        task_status.started()
        if is_start_cancelled():
            return
        with trio.CancelScope(shield=True):
            async with trio.open_nursery() as self._nursery:
                await self._closing.wait()
                await self._end_all()  # each wait in it is bounded
                self._nursery.cancel_scope.cancel()

    def close(self) -> None:
        """Begin to close; `run` ends when all trees have ended."""
        self._closing.set()

    async def _end_all(self) -> None:
        """Kill all remaining groups."""
        proved = True
        for tree in list(self.trees.values()):
            tree.kill()
            with trio.move_on_after(KILL_WITHIN):
                await tree.wait_empty()
            proved = not (await tree.abandon()).left_running and proved
            await tree.aclose()
        self.proved = proved


async def _start(command: Command, around: str) -> trio.Process:
    directory = os.fsencode(command.cwd)
    path = os.fsencode(command.env.get("PATH", os.defpath))
    try:
        program = find_program(os.fsencode(command.argv[0]), path, directory)
    except NotStartedError as error:
        raise spawn_error(error.what, error.path, error.number) from None
    try:
        return await trio.lowlevel.open_process(  # it cannot be cancelled half-way
            list(command.argv),
            executable=os.fsdecode(program),
            cwd=command.cwd,
            env={**command.env, tree_tag.VARIABLE: around},
            stdin=subprocess.PIPE if command.stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        number = error.errno or 0
        if error.filename == command.cwd:
            raise spawn_error(b"directory", directory, number) from None
        what = {2: b"interpreter", 8: b"executable"}.get(number, b"system")
        raise spawn_error(what, program, number) from None


def _exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
