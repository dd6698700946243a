"""Opening a launcher: the boot sweep, then the warden or what stands in for it."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import asynccontextmanager
from enum import Enum
from functools import cache, partial
from typing import TYPE_CHECKING, Final, Protocol

import trio
from trio.lowlevel import enable_ki_protection

from sessionmgr.errors import LauncherFailed
from sessionmgr.process import mark, roll
from sessionmgr.process.descriptors import Raised, raise_limit
from sessionmgr.process.launcher import Launcher
from sessionmgr.process.roll import BootReport
from sessionmgr.process.shortage import is_passing, when_there_is_room
from sessionmgr.process.temporary import remove_abandoned

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from sessionmgr.process.direct import DirectLauncher
    from sessionmgr.process.roll import Signature
    from sessionmgr.process.warded import WardedLauncher

log: Final = logging.getLogger("sessionmgr.process")


class Kind(Enum):
    """Who owns the trees."""

    BEST = "best"
    """The warden where there is one, else process groups."""
    WARDED = "warded"
    """A warden and guards: Linux."""
    DIRECT = "direct"
    """Process groups: everywhere, and weaker."""


class OpenLauncher(Launcher, Protocol):
    """A launcher that `open_launcher` has opened."""

    @property
    def boot(self) -> BootReport:
        """What dead owners had left, and what became of it."""
        ...


@asynccontextmanager
@enable_ki_protection
async def open_launcher(
    *, state_dir: Path | None = None, kind: Kind = Kind.BEST
) -> AsyncGenerator[OpenLauncher, None]:
    """Open a launcher: sweep what dead owners have left, and start a warden.

    When the block is left, all trees are killed that still live. `state_dir` is where the boot
    sweep keeps its files; all launchers of a user may share it, and by default they do.

    Raises:
        LauncherFailed: no warden came up, or the directory is of no use.
    """
    launcher, signature = await when_there_is_room(partial(_prepare, state_dir, kind))
    failure: BaseException | None = None
    try:
        async with trio.open_nursery() as nursery:
            try:
                await nursery.start(launcher.run)
                await trio.lowlevel.checkpoint_if_cancelled()
                yield launcher
            except BaseException as error:  # raised again below  # noqa: ASYNC103, BLE001
                failure = error
            finally:
                launcher.close()
    except BaseExceptionGroup as group:
        _, ours = group.split(trio.Cancelled)
        if ours is not None:
            raise _bare(ours) from failure
        if failure is None:
            raise
    finally:
        if signature is not None and launcher.proved:
            signature.strike_out()
        elif signature is not None:
            signature.leave()
    if failure is not None:
        raise failure


async def _prepare(
    state_dir: Path | None, kind: Kind
) -> tuple[WardedLauncher | DirectLauncher, Signature | None]:
    """Kill what dead owners have left, and register a launcher in the roll.

    A spawner needs the roll only to find what remains after it and its owner were both killed. It
    therefore starts without one, unless the caller named the directory.
    """
    try:
        directory = state_dir if state_dir is not None else roll.default_directory()
        boot = await trio.to_thread.run_sync(roll.call, directory)
        await trio.to_thread.run_sync(remove_abandoned)  # their owners are dead
    except LauncherFailed as error:
        return _without_roll(_launcher(kind, BootReport()), state_dir, error), None
    launcher = _launcher(kind, boot)
    try:
        return launcher, await trio.to_thread.run_sync(roll.sign, directory, launcher.number)
    except LauncherFailed as error:
        return _without_roll(launcher, state_dir, error), None


def _without_roll(
    launcher: WardedLauncher | DirectLauncher, state_dir: Path | None, error: LauncherFailed
) -> WardedLauncher | DirectLauncher:
    """Return the launcher if it may run without a roll, and log the consequence once.

    Raises:
        LauncherFailed: It may not.
    """
    if state_dir is not None or launcher.needs_roll or is_passing(error):
        raise error
    _say_without_roll(error.why)
    return launcher


@cache
def _say_without_roll(why: str) -> None:
    log.warning(
        "event=no_state_directory why=%s; children that outlive a kill -9 of this program and of"
        " its spawner will not be found at the next start (XDG_STATE_HOME names a directory)",
        why,
    )


def _launcher(kind: Kind, boot: BootReport) -> WardedLauncher | DirectLauncher:
    warded = _has_subreapers()
    if kind is Kind.WARDED and not warded:
        raise LauncherFailed("this system has no subreapers or no pidfds; Kind.DIRECT needs none")
    if kind is Kind.DIRECT or not warded:
        if sys.platform == "linux" and kind is Kind.BEST:
            log.warning("no_pidfd: children are owned by process groups, which is weaker")
        _raised()
        from sessionmgr.process.direct import DirectLauncher  # only where it is used

        return DirectLauncher(mark.new_launcher(), boot)
    from sessionmgr.process.warded import WardedLauncher  # only where it is used

    return WardedLauncher(mark.new_launcher(), boot, _raised().before)


@cache
def _raised() -> Raised:
    """Raise the limit of open files, once; what it was before is what children get."""
    return raise_limit()


def _has_subreapers() -> bool:
    if sys.platform != "linux" or not sys.executable:
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as error:
        if is_passing(error):  # a passing shortage, not a property of the system
            raise LauncherFailed(f"cannot open a pidfd: {error}") from error
        return False
    return True


def _bare(group: BaseExceptionGroup[BaseException]) -> BaseException:
    match group.exceptions:
        case [BaseExceptionGroup() as inner]:
            return _bare(inner)
        case [error]:
            return error
        case _:
            return group
