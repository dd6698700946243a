"""Launcher for Linux, which owns trees through a spawner and its reapers.

The strategy: one spawner serves all trees, and is replaced when it dies. Reapers are prepared in
advance, because making one takes longer than starting a program: a new one, or those whose trees
are empty. One task reads the sockets of all reapers. A search in a thread kills the trees whose
reapers were killed. All of these are shielded: a cancel first ends the body of the block and the
trees in it, and these tasks after them.
"""

from __future__ import annotations

import itertools
import logging
import os
import signal
import socket
from functools import partial
from typing import TYPE_CHECKING, Final

import trio
from trio.lowlevel import enable_ki_protection

from sessionmgr.process import procfs, tree_tag
from sessionmgr.process.descriptor_limits import DescriptorBudget
from sessionmgr.process.errors import LauncherFailed, ProcessError, SpawnerKilled
from sessionmgr.process.exit_report import LeftRunning
from sessionmgr.process.kill_tagged import TaggedProcessKiller
from sessionmgr.process.linux.packet import pack
from sessionmgr.process.linux.socket_dispatcher import SocketDispatcher
from sessionmgr.process.linux.spawner_client import start_spawner
from sessionmgr.process.linux.tree import ReaperTree, StartStage
from sessionmgr.process.pipes import StandardPipes
from sessionmgr.process.resource_shortage import retry_on_shortage
from sessionmgr.process.spawn_errors import spawn_error
from sessionmgr.process.start_cancelled import is_start_cancelled

if TYPE_CHECKING:
    from sessionmgr.process.command import Command
    from sessionmgr.process.kill_tagged import TaggedProcessKiller
    from sessionmgr.process.launcher_registry import BootReport
    from sessionmgr.process.linux.spawner_client import SpawnerProcess

log: Final = logging.getLogger("sessionmgr.process")

MAX_STARTS: Final = 32
"""Maximum number of concurrent starts; Linux limits the descriptors in flight on sockets."""
MAX_SPARES: Final = 16
"""Maximum number of reapers that are kept after their trees have become empty."""
ATTEMPTS: Final = 5
"""Number of attempts to get a reaper if spawners die before they make one."""
MAX_SPAWNER_DEATHS: Final = 10
"""Maximum number of spawner deaths within `SPAWNER_DEATHS_WITHIN` s before the launcher fails."""
SPAWNER_DEATHS_WITHIN: Final = 10.0
KILL_WITHIN: Final = 5.0
"""Seconds for killing the remaining trees when the block ends."""
REAP_WITHIN: Final = 30.0
"""Seconds for the kernel to end a spawner that was killed."""
SWEEP_FOR: Final = 5.0


class SpawnerLauncher:
    """Launcher that starts children as trees with reapers. It fits `Launcher`."""

    needs_registry: Final = False
    """The spawner ends the trees when their owner is killed."""

    def __init__(self, number: int, boot: BootReport, open_files: int) -> None:
        self.number = number
        """Launcher number, the part that the tags of all its trees have in common."""
        self.boot = boot
        self.proved = False
        """Whether all trees were known to be empty when it closed."""
        self._open_files = open_files
        self._descriptors = DescriptorBudget()
        self.dispatcher = SocketDispatcher()
        self._spawner: SpawnerProcess | None = None
        self._spawner_replaced = trio.lowlevel.ParkingLot()
        self._start_limit = trio.CapacityLimiter(MAX_STARTS)
        self._numbers = itertools.cycle(range(1, tree_tag.TREES))
        self._trees: dict[int, ReaperTree] = {}
        self._orphaned: list[ReaperTree] = []
        self._sweeping = False
        self._spares: list[ReaperTree] = []
        self._making_spare = False
        self._nursery: trio.Nursery | None = None
        self._failure: LauncherFailed | None = None
        self._closing = trio.Event()

    @property
    def spawner_pid(self) -> int:
        """Process id of the present spawner; 0 if there is none."""
        gone = self._spawner is None or self._spawner.exited.is_set()
        return self._spawner.pid if self._spawner is not None and not gone else 0

    # --- starting ----------------------------------------------------------------------------

    async def spawn(self, command: Command) -> ReaperTree:
        """Start a child; see `Launcher`."""
        tree = await retry_on_shortage(partial(self._spawn, command), self._has_children)
        self._ensure_spare()
        return tree

    async def _spawn(self, command: Command) -> ReaperTree:
        async with self._start_limit:
            try:
                with self._descriptors.reserve():
                    tree = await self._tree_with_reaper()
                    try:
                        pipes = StandardPipes(stdin=command.stdin)
                    except BaseException:
                        tree.close()
                        raise
            except OSError as error:
                program, number = os.fsencode(command.argv[0]), error.errno or 0
                raise spawn_error(b"system", program, number) from error
            await self._start(tree, command, pipes)
            return tree

    def _has_children(self) -> bool:
        return len(self._trees) > len(self._spares) or self._descriptors.has_reservations

    async def _start(self, tree: ReaperTree, command: Command, pipes: StandardPipes) -> None:
        around = os.environ.get(tree_tag.VARIABLE)
        request = _request(command, tree.tag, tree_tag.nested_value(around, tree.tag))
        try:
            await tree.start(request, pipes)
            if tree.stage is StartStage.STARTED:
                return
            await tree.wait_empty()
            if tree.crash:
                log.error("A reaper crashed. tree=%s\n%s", tree.id, tree.crash)
            raise tree.failure or SpawnerKilled(command.argv[0])
        except BaseException:
            await self._discard(tree)  # shielded and bounded  # noqa: ASYNC102
            raise

    async def _tree_with_reaper(self) -> ReaperTree:
        """Return a tree that has a reaper and no program yet."""
        while self._spares and self._failure is None and not self._closing.is_set():
            spare = self._spares.pop()
            if spare.is_ready:
                return spare
            spare.close()  # its reaper was killed meanwhile
        for _ in range(ATTEMPTS):
            tree = await self._request_reaper()
            if tree is not None:
                return tree
        raise LauncherFailed(f"{ATTEMPTS} spawners or reapers in a row were killed")

    async def _request_reaper(self) -> ReaperTree | None:
        """Request a new reaper; return None if it or the spawner was killed before it was ready."""
        spawner = await self._current_spawner()
        near, far = socket.socketpair()
        with far:
            near.setblocking(False)
            tree = self._new_tree(near, spawner.pid)
            try:
                while not await spawner.request_reaper(far.fileno()):
                    # The spawner was dead already: that costs no attempt, the next one is asked.
                    await spawner.exited.wait()
                    spawner = await self._current_spawner()
                    tree.spawner_pid = spawner.pid
                far.close()
                if await tree.wait_ready():
                    return tree
            except BaseException:
                tree.close()
                raise
        tree.close()
        if tree.failure is not None:
            raise tree.failure
        return None

    def _new_tree(self, line: socket.socket, spawner: int) -> ReaperTree:
        """Create a tree whose reaper is not yet requested."""
        number = next(each for each in self._numbers if each not in self._trees)
        tree = ReaperTree(tree_tag.make_tag(self.number, number), line, self, spawner)
        self._trees[number] = tree
        return tree

    def _ensure_spare(self) -> None:
        """Prepare a reaper for the next child."""
        if not self._spares and not self._making_spare and self._nursery is not None:
            self._making_spare = True
            self._nursery.start_soon(self._make_spare)

    @enable_ki_protection
    async def _make_spare(self) -> None:
        try:
            spare = await self._request_reaper()
        except (ProcessError, OSError):
            return  # the next start meets the same error and raises it
        finally:
            self._making_spare = False
        if spare is not None:
            self._spares.append(spare)

    @enable_ki_protection
    async def _discard(self, tree: ReaperTree) -> None:
        """End an unfinished start, also when cancelled."""
        with trio.CancelScope(shield=True):
            tree.kill()
            with trio.move_on_after(KILL_WITHIN):
                await tree.wait_empty()
            if not tree.is_over:
                await tree.abandon()
            tree.close()

    async def _current_spawner(self) -> SpawnerProcess:
        while True:
            if self._failure is not None:
                raise LauncherFailed(str(self._failure)) from self._failure
            if self._closing.is_set() or self._spawner is None:
                raise LauncherFailed("the launcher is closed")
            if not self._spawner.exited.is_set():
                return self._spawner
            await self._spawner_replaced.park()

    # --- required by `ReaperTree` --------------------------------------------------------------

    def reaper_killed(self, tree: ReaperTree) -> None:
        """Start the search for the processes of a tree whose reaper was killed."""
        self._orphaned.append(tree)
        if not self._sweeping and self._nursery is not None:
            self._sweeping = True
            self._nursery.start_soon(self._kill_orphaned)

    async def kill_tree(self, tree: ReaperTree) -> None:
        """Kill the stuck reaper of a tree, and search for the tree's processes."""
        pid, started = tree.reaper
        await trio.to_thread.run_sync(_kill_exact, pid, started)
        await self._kill_trees([tree])

    def remove_tree(self, tree: ReaperTree) -> None:
        """Forget a closed tree."""
        self._trees.pop(tree_tag.tree_number(tree.tag), None)

    def reuse_reaper(self, tree: ReaperTree, line: socket.socket) -> bool:
        """Keep a reaper without a tree for the next child; return False if it is not needed.

        A reaper whose spawner is dead is not kept: if it were killed, no spawner would replace it.
        """
        wanted = not self._closing.is_set() and tree.spawner_pid == self.spawner_pid
        if not wanted or len(self._spares) >= MAX_SPARES:
            return False
        spare = self._new_tree(line, tree.spawner_pid)
        spare.reaper, spare.stage = tree.reaper, StartStage.READY
        self._spares.append(spare)
        return True

    @enable_ki_protection
    async def _kill_orphaned(self) -> None:
        try:
            while self._orphaned:
                await self._kill_trees(self._orphaned)
        finally:
            self._sweeping = False

    async def _kill_trees(self, trees: list[ReaperTree]) -> None:
        tags = {tree.tag for tree in trees}
        search = await trio.to_thread.run_sync(
            TaggedProcessKiller(tags.__contains__).run, SWEEP_FOR
        )
        for tree in [tree for tree in trees if tree.tag in tags]:
            trees.remove(tree)
            tree.set_swept(clean=search.clean, left=_left_running(tree.tag, search))

    # --- the block -----------------------------------------------------------------------------

    @enable_ki_protection
    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve trees until `close`.

        Raises:
            LauncherFailed: The first spawner did not start.
        """
        try:
            self._spawner = await retry_on_shortage(self._start_spawner)
            task_status.started()
            if is_start_cancelled():
                await self._spawner.kill_and_wait()
                return
            with trio.CancelScope(shield=True):
                async with trio.open_nursery() as self._nursery:
                    self._nursery.start_soon(self.dispatcher.run)
                    self._nursery.start_soon(self._replace_spawners)
                    self._ensure_spare()
                    await self._closing.wait()
                    await self._end_all()  # each wait in it is bounded
                    self._nursery.cancel_scope.cancel()
        finally:
            self._nursery = None
            self.dispatcher.close()

    async def _start_spawner(self) -> SpawnerProcess:
        if self._closing.is_set():
            raise LauncherFailed("the launcher is closed")
        return await start_spawner(self.number, self._open_files)

    @enable_ki_protection
    async def _replace_spawners(self) -> None:
        """Replace spawners that die until `close`, or until too many of them have died."""
        assert self._spawner is not None
        deaths: list[float] = []
        while True:
            await self._spawner.wait()
            self._spawner.close()
            if self._closing.is_set():
                return
            now = trio.current_time()
            deaths = [*(each for each in deaths if each > now - SPAWNER_DEATHS_WITHIN), now]
            log.warning("The spawner died. pid=%d", self._spawner.pid)
            while self._spares:
                self._spares.pop().close()
            try:
                if len(deaths) > MAX_SPAWNER_DEATHS:
                    raise LauncherFailed(
                        f"{len(deaths)} spawners died in {SPAWNER_DEATHS_WITHIN:g} s"
                    )
                self._spawner = await retry_on_shortage(self._start_spawner)
                if self._closing.is_set() and self._nursery is not None:
                    self._nursery.start_soon(_shut_down, self._spawner)
            except LauncherFailed as error:
                # Living trees continue: they need their reapers, and no spawner.
                log.exception("The launcher cannot start children any more.")
                self._failure = error
            self._spawner_replaced.unpark_all()
            if self._failure is not None:
                return

    def close(self) -> None:
        """Begin to close; `run` ends when all trees have ended."""
        self._closing.set()
        self._spawner_replaced.unpark_all()

    async def _end_all(self) -> None:
        """Kill all remaining trees and shut down the spawner."""
        trees = list(self._trees.values())
        for tree in trees:
            tree.kill()
        with trio.move_on_after(KILL_WITHIN):  # noqa: ASYNC912  # there may be none
            for tree in trees:
                await tree.wait_empty()
        proved = True
        for tree in trees:
            if not tree.is_over:
                await tree.abandon()
            report = await tree.wait_empty()
            proved = proved and not report.left_running
            tree.close()
        self._spares.clear()
        if self._spawner is not None:
            await _shut_down(self._spawner)
        self.proved = proved


async def _shut_down(spawner: SpawnerProcess) -> None:
    """Shut down a spawner, or kill it after a time limit."""
    if not spawner.exited.is_set():
        spawner.shut_down()
        with trio.move_on_after(KILL_WITHIN):
            await spawner.exited.wait()
    if not spawner.exited.is_set():
        spawner.kill()
        with trio.move_on_after(REAP_WITHIN):
            await spawner.exited.wait()


def _request(command: Command, number: int, around: str) -> bytes:
    environment = {**command.env, tree_tag.VARIABLE: around}
    return pack(
        b"%d" % number,
        os.fsencode(command.cwd),
        b"%d" % len(command.argv),
        *map(os.fsencode, command.argv),
        *(os.fsencode(f"{name}={value}") for name, value in environment.items()),
    )


def _left_running(tag: int, search: TaggedProcessKiller) -> tuple[LeftRunning, ...]:
    return tuple(
        LeftRunning(pid=pid, name=name, uid=procfs.owner_uid(pid))
        for pid, name in search.left.items()
        if tag in tree_tag.process_tags(pid)
    )


def _kill_exact(pid: int, started: int) -> None:
    """Kill a process if it is still the one that started then."""
    try:
        held = os.pidfd_open(pid)
    except (OSError, ValueError):
        return
    try:
        if procfs.start_time(pid) == started:
            signal.pidfd_send_signal(held, signal.SIGKILL)
    except OSError:
        pass
    finally:
        os.close(held)
