"""The launcher with a warden: Linux.

The strategy: one warden, replaced when it dies, for all trees; guards ahead of the need, as
making one takes longer than starting a program: a new one, or those whose trees are empty; one
task that reads the lines of all guards; a sweep, in a thread, for the trees whose guards were
killed. All of it is shielded: a cancel ends the body of the block first, and the trees in it,
and this after them.
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

from sessionmgr.errors import LauncherFailed, ProcessError, TreeLost
from sessionmgr.process import mark, proc
from sessionmgr.process.appointed import appoint
from sessionmgr.process.beginning import is_abandoned
from sessionmgr.process.descriptors import Descriptors
from sessionmgr.process.facts import LeftRunning
from sessionmgr.process.failure import failure_of
from sessionmgr.process.guarded import GuardedTree, Stage
from sessionmgr.process.packet import pack
from sessionmgr.process.pipes import Pipes
from sessionmgr.process.shortage import when_there_is_room
from sessionmgr.process.sweep import Sweep
from sessionmgr.process.switchboard import Switchboard

if TYPE_CHECKING:
    from sessionmgr.process.appointed import AppointedWarden
    from sessionmgr.process.command import Command
    from sessionmgr.process.roll import BootReport
    from sessionmgr.process.sweep import Sweep

log: Final = logging.getLogger("sessionmgr.process")

AT_ONCE: Final = 32
"""How many children may be in the making; the descriptors on their way are counted by Linux."""
IDLE: Final = 16
"""So many guards without a tree are kept, when theirs is empty."""
ATTEMPTS: Final = 5
"""How often a guard is asked for, if wardens die before they make one."""
WARDENS: Final = 10
"""How many wardens may die within `WARDENS_WITHIN` seconds, before the launcher gives up."""
WARDENS_WITHIN: Final = 10.0
KILL_WITHIN: Final = 5.0
"""Seconds for the trees that are left when the block ends."""
BURY_WITHIN: Final = 30.0
"""Seconds for the kernel to end a warden that was killed."""
SWEEP_FOR: Final = 5.0


class WardedLauncher:
    """Starts children as trees with guards. It fits `Launcher`."""

    needs_roll: Final = False
    """The spawner ends the trees when their owner is killed."""

    def __init__(self, number: int, boot: BootReport, open_files: int) -> None:
        self.number = number
        """The part of their marks that all its trees have in common."""
        self.boot = boot
        self.proved = False
        """Whether all trees were seen to be empty when it closed."""
        self._open_files = open_files
        self._descriptors = Descriptors()
        self.switchboard = Switchboard()
        self._warden: AppointedWarden | None = None
        self._new_warden = trio.lowlevel.ParkingLot()
        self._room = trio.CapacityLimiter(AT_ONCE)
        self._numbers = itertools.cycle(range(1, mark.TREES))
        self._trees: dict[int, GuardedTree] = {}
        self._lost: list[GuardedTree] = []
        self._sweeping = False
        self._spares: list[GuardedTree] = []
        self._sparing = False
        self._nursery: trio.Nursery | None = None
        self._failure: LauncherFailed | None = None
        self._closing = trio.Event()

    @property
    def warden(self) -> int:
        """The process of the present warden; 0 if there is none."""
        gone = self._warden is None or self._warden.gone.is_set()
        return self._warden.pid if self._warden is not None and not gone else 0

    # Starting.

    async def spawn(self, command: Command) -> GuardedTree:
        """Start a child; see `Launcher`."""
        tree = await when_there_is_room(partial(self._spawn, command), self._has_children)
        self._have_spare()
        return tree

    async def _spawn(self, command: Command) -> GuardedTree:
        async with self._room:
            try:
                with self._descriptors.claimed():
                    tree = await self._guard()
                    try:
                        pipes = Pipes(stdin=command.stdin)
                    except BaseException:
                        tree.close()
                        raise
            except OSError as error:
                program, number = os.fsencode(command.argv[0]), error.errno or 0
                raise failure_of(b"system", program, number) from error
            await self._start(tree, command, pipes)
            return tree

    def _has_children(self) -> bool:
        return len(self._trees) > len(self._spares) or self._descriptors.are_claimed

    async def _start(self, tree: GuardedTree, command: Command, pipes: Pipes) -> None:
        around = os.environ.get(mark.VARIABLE)
        request = _request(command, tree.mark, mark.inside(around, tree.mark))
        try:
            await tree.ask(request, pipes)
            if tree.stage is Stage.STARTED:
                return
            await tree.wait_empty()
            if tree.crash:
                log.error("guard_crashed tree=%s\n%s", tree.id, tree.crash)
            raise tree.failure or TreeLost(command.argv[0])
        except BaseException:
            await self._give_up(tree)  # shielded and bounded  # noqa: ASYNC102
            raise

    async def _guard(self) -> GuardedTree:
        """Return a tree that has a guard, and nothing to guard yet."""
        while self._spares and self._failure is None and not self._closing.is_set():
            spare = self._spares.pop()
            if spare.is_ready:
                return spare
            spare.close()  # somebody killed it meanwhile
        for _ in range(ATTEMPTS):
            tree = await self._new_guard()
            if tree is not None:
                return tree
        raise LauncherFailed(f"{ATTEMPTS} wardens or guards in a row were killed")

    async def _new_guard(self) -> GuardedTree | None:
        """Have a guard made; None if it, or the warden that was asked, died over that."""
        warden = await self._present_warden()
        near, far = socket.socketpair()
        with far:
            near.setblocking(False)
            tree = self._new_tree(near, warden.pid)
            try:
                while not await warden.ask_for_guard(far.fileno()):
                    # It was dead before: that costs no attempt, the next one is asked.
                    await warden.gone.wait()
                    warden = await self._present_warden()
                    tree.warden = warden.pid
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

    def _new_tree(self, line: socket.socket, warden: int) -> GuardedTree:
        """Make a tree that nobody has asked its guard for yet."""
        number = next(each for each in self._numbers if each not in self._trees)
        tree = GuardedTree(mark.mark_of(self.number, number), line, self, warden)
        self._trees[number] = tree
        return tree

    def _have_spare(self) -> None:
        """Have a guard at hand for the next child."""
        if not self._spares and not self._sparing and self._nursery is not None:
            self._sparing = True
            self._nursery.start_soon(self._make_spare)

    @enable_ki_protection
    async def _make_spare(self) -> None:
        try:
            spare = await self._new_guard()
        except (ProcessError, OSError):
            return  # whoever needs one will meet the same, and say so
        finally:
            self._sparing = False
        if spare is not None:
            self._spares.append(spare)

    @enable_ki_protection
    async def _give_up(self, tree: GuardedTree) -> None:
        """End what may have begun, though we are cancelled."""
        with trio.CancelScope(shield=True):
            tree.kill()
            with trio.move_on_after(KILL_WITHIN):
                await tree.wait_empty()
            if not tree.is_over:
                await tree.abandon()
            tree.close()

    async def _present_warden(self) -> AppointedWarden:
        while True:
            if self._failure is not None:
                raise LauncherFailed(str(self._failure)) from self._failure
            if self._closing.is_set() or self._warden is None:
                raise LauncherFailed("the launcher is closed")
            if not self._warden.gone.is_set():
                return self._warden
            await self._new_warden.park()

    # Looking after them: what `GuardedTree` asks of its keeper.

    def lost(self, tree: GuardedTree) -> None:
        """Have the tree of a killed guard swept."""
        self._lost.append(tree)
        if not self._sweeping and self._nursery is not None:
            self._sweeping = True
            self._nursery.start_soon(self._sweep_lost)

    async def clear(self, tree: GuardedTree) -> None:
        """Sweep a tree with a guard that is stuck, and kill that too."""
        pid, started = tree.guard
        await trio.to_thread.run_sync(_kill_if_it_is, pid, started)
        await self._sweep([tree])

    def forget(self, tree: GuardedTree) -> None:
        """Take note that a tree is given up."""
        self._trees.pop(mark.tree_of(tree.mark), None)

    def take_back(self, tree: GuardedTree, line: socket.socket) -> bool:
        """Keep a guard that has nothing to guard, for the next child.

        One whose warden is dead is let go: nobody would stand in for it.
        """
        wanted = not self._closing.is_set() and tree.warden == self.warden
        if not wanted or len(self._spares) >= IDLE:
            return False
        spare = self._new_tree(line, tree.warden)
        spare.guard, spare.stage = tree.guard, Stage.READY
        self._spares.append(spare)
        return True

    @enable_ki_protection
    async def _sweep_lost(self) -> None:
        try:
            while self._lost:
                await self._sweep(self._lost)
        finally:
            self._sweeping = False

    async def _sweep(self, trees: list[GuardedTree]) -> None:
        marks = {tree.mark for tree in trees}
        sweep = await trio.to_thread.run_sync(Sweep(marks.__contains__).run, SWEEP_FOR)
        for tree in [tree for tree in trees if tree.mark in marks]:
            trees.remove(tree)
            tree.swept(clean=sweep.clean, left=_left_of(tree.mark, sweep))

    # The block.

    @enable_ki_protection
    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Be there for trees, until `close`.

        Raises:
            LauncherFailed: the first warden did not come up.
        """
        try:
            self._warden = await when_there_is_room(self._appoint)
            task_status.started()
            if is_abandoned():
                await self._warden.end()
                return
            with trio.CancelScope(shield=True):
                async with trio.open_nursery() as self._nursery:
                    self._nursery.start_soon(self.switchboard.run)
                    self._nursery.start_soon(self._replace_wardens)
                    self._have_spare()
                    await self._closing.wait()
                    await self._end_all()  # each wait in it is bounded
                    self._nursery.cancel_scope.cancel()
        finally:
            self._nursery = None
            self.switchboard.close()

    async def _appoint(self) -> AppointedWarden:
        if self._closing.is_set():
            raise LauncherFailed("the launcher is closed")
        return await appoint(self.number, self._open_files)

    @enable_ki_protection
    async def _replace_wardens(self) -> None:
        """Have a warden, until `close`; after too many of them have died, none."""
        assert self._warden is not None
        deaths: list[float] = []
        while True:
            await self._warden.wait()
            self._warden.close()
            if self._closing.is_set():
                return
            now = trio.current_time()
            deaths = [*(each for each in deaths if each > now - WARDENS_WITHIN), now]
            log.warning("warden_died pid=%d", self._warden.pid)
            while self._spares:
                self._spares.pop().close()
            try:
                if len(deaths) > WARDENS:
                    raise LauncherFailed(f"{len(deaths)} wardens died in {WARDENS_WITHIN:g} s")
                self._warden = await when_there_is_room(self._appoint)
                if self._closing.is_set() and self._nursery is not None:
                    self._nursery.start_soon(_dismiss, self._warden)
            except LauncherFailed as error:
                # Trees that live go on: they need guards, and no warden.
                log.exception("launcher_failed")
                self._failure = error
            self._new_warden.unpark_all()
            if self._failure is not None:
                return

    def close(self) -> None:
        """Begin to close; `run` ends when all is over."""
        self._closing.set()
        self._new_warden.unpark_all()

    async def _end_all(self) -> None:
        """Kill all trees that are left, dismiss the warden."""
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
            facts = await tree.wait_empty()
            proved = proved and not facts.left_running
            tree.close()
        self._spares.clear()
        if self._warden is not None:
            await _dismiss(self._warden)
        self.proved = proved


async def _dismiss(warden: AppointedWarden) -> None:
    """Let a warden end itself, or end it."""
    if not warden.gone.is_set():
        warden.dismiss()
        with trio.move_on_after(KILL_WITHIN):
            await warden.gone.wait()
    if not warden.gone.is_set():
        warden.kill()
        with trio.move_on_after(BURY_WITHIN):
            await warden.gone.wait()


def _request(command: Command, number: int, around: str) -> bytes:
    environment = {**command.env, mark.VARIABLE: around}
    return pack(
        b"%d" % number,
        os.fsencode(command.cwd),
        b"%d" % len(command.argv),
        *map(os.fsencode, command.argv),
        *(os.fsencode(f"{name}={value}") for name, value in environment.items()),
    )


def _left_of(mark_of_tree: int, sweep: Sweep) -> tuple[LeftRunning, ...]:
    return tuple(
        LeftRunning(pid=pid, name=name, uid=proc.owner_of(pid))
        for pid, name in sweep.left.items()
        if mark_of_tree in mark.marks_of(pid)
    )


def _kill_if_it_is(pid: int, started: int) -> None:
    """Kill a process if it still is the one that began then."""
    try:
        held = os.pidfd_open(pid)
    except (OSError, ValueError):
        return
    try:
        if proc.start_time(pid) == started:
            signal.pidfd_send_signal(held, signal.SIGKILL)
    except OSError:
        pass
    finally:
        os.close(held)
