"""Opening a launcher: sweep what dead launchers left, then start the best kind available."""

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

from sessionmgr.process import launcher_registry, tree_tag
from sessionmgr.process.descriptor_limits import LimitChange, raise_limit
from sessionmgr.process.errors import LauncherFailed
from sessionmgr.process.launcher import Launcher
from sessionmgr.process.launcher_registry import BootReport
from sessionmgr.process.resource_shortage import is_transient_shortage, retry_on_shortage
from sessionmgr.process.temporary_directories import remove_stale_directories

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from sessionmgr.process.launcher_registry import LauncherRegistration
    from sessionmgr.process.linux.launcher import SpawnerLauncher
    from sessionmgr.process.process_group import ProcessGroupLauncher

log: Final = logging.getLogger("sessionmgr.process")


class LauncherKind(Enum):
    """Kind of launcher: which processes own the trees."""

    BEST = "best"
    """The spawner where the system supports it, else process groups."""
    SPAWNER = "spawner"
    """A spawner and its reapers: Linux."""
    DIRECT = "direct"
    """Process groups: every system, with weaker guarantees."""


class OpenLauncher(Launcher, Protocol):
    """Launcher that `open_launcher` has opened."""

    @property
    def boot(self) -> BootReport:
        """What dead owners had left, and what was killed of it."""
        ...


@asynccontextmanager
@enable_ki_protection
async def open_launcher(
    *, state_dir: Path | None = None, kind: LauncherKind = LauncherKind.BEST
) -> AsyncGenerator[OpenLauncher, None]:
    """Open a launcher: kill what dead owners left, and start a spawner.

    Leaving the block kills all trees that still live.

    Args:
        state_dir: Directory of the launcher registry. All launchers of a user may share it, and by
            default they do.
        kind: Kind of launcher.

    Raises:
        LauncherFailed: The spawner did not start, or the directory is unusable.
    """
    launcher, registration = await retry_on_shortage(partial(_prepare, state_dir, kind))
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
            raise _unwrap_group(ours) from failure
        if failure is None:
            raise
    finally:
        if registration is not None and launcher.proved:
            registration.remove()
        elif registration is not None:
            registration.keep_for_sweep()
    if failure is not None:
        raise failure


async def _prepare(
    state_dir: Path | None, kind: LauncherKind
) -> tuple[SpawnerLauncher | ProcessGroupLauncher, LauncherRegistration | None]:
    """Kill what dead owners left, and register a launcher.

    A spawner needs the registry only to find what remains after it and its owner were both killed.
    It therefore starts without one, unless the caller named the directory.
    """
    try:
        directory = (
            state_dir if state_dir is not None else launcher_registry.default_registry_directory()
        )
        boot = await trio.to_thread.run_sync(launcher_registry.sweep_dead_launchers, directory)
        await trio.to_thread.run_sync(remove_stale_directories)  # their owners are dead
    except LauncherFailed as error:
        return _without_registry(_launcher(kind, BootReport()), state_dir, error), None
    launcher = _launcher(kind, boot)
    try:
        return launcher, await trio.to_thread.run_sync(
            launcher_registry.register_launcher, directory, launcher.number
        )
    except LauncherFailed as error:
        return _without_registry(launcher, state_dir, error), None


def _without_registry(
    launcher: SpawnerLauncher | ProcessGroupLauncher, state_dir: Path | None, error: LauncherFailed
) -> SpawnerLauncher | ProcessGroupLauncher:
    """Return the launcher if it may run without a registry, and log the consequence once.

    Raises:
        LauncherFailed: It may not.
    """
    if state_dir is not None or launcher.needs_registry or is_transient_shortage(error):
        raise error
    _log_without_registry(error.why)
    return launcher


@cache
def _log_without_registry(why: str) -> None:
    log.warning(
        "The state directory is unusable, so the next start cannot find children that outlive a"
        " kill -9 of this program and of its spawner; set XDG_STATE_HOME to another directory."
        " error=%s",
        why,
    )


def _launcher(kind: LauncherKind, boot: BootReport) -> SpawnerLauncher | ProcessGroupLauncher:
    has_subreapers = _has_subreapers()
    if kind is LauncherKind.SPAWNER and not has_subreapers:
        raise LauncherFailed("this system has no subreapers or no pidfds; use LauncherKind.DIRECT")
    if kind is LauncherKind.DIRECT or not has_subreapers:
        if sys.platform == "linux" and kind is LauncherKind.BEST:
            log.warning(
                "This Linux has no subreapers or no pidfds; process groups, which are weaker, own"
                " the children."
            )
        _raise_limit_once()
        from sessionmgr.process.process_group import ProcessGroupLauncher  # only where it is used

        return ProcessGroupLauncher(tree_tag.new_launcher_number(), boot)
    from sessionmgr.process.linux.launcher import SpawnerLauncher  # only where it is used

    return SpawnerLauncher(tree_tag.new_launcher_number(), boot, _raise_limit_once().before)


@cache
def _raise_limit_once() -> LimitChange:
    """Raise the limit of open files, once; children get the limit from before."""
    return raise_limit()


def _has_subreapers() -> bool:
    if sys.platform != "linux" or not sys.executable:
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as error:
        if is_transient_shortage(error):  # a passing shortage, not a property of the system
            raise LauncherFailed(f"cannot open a pidfd: {error}") from error
        return False
    return True


def _unwrap_group(group: BaseExceptionGroup[BaseException]) -> BaseException:
    match group.exceptions:
        case [BaseExceptionGroup() as inner]:
            return _unwrap_group(inner)
        case [error]:
            return error
        case _:
            return group
