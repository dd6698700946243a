"""Registry of launchers: one file for each in the state directory, locked while its owner lives.

The strategy: the kernel releases a lock when its holder dies, so a file that can be locked belongs
to a dead owner, and every process that still carries that launcher's tag is killed. A process that
the owner forked may hold the lock on; then the owner's identity (boot, pid, start time) shows that
it is gone. A file becomes visible by a rename, complete and locked, so another launcher cannot take
it for a dead one while it is written. A file that cannot be read is reported, and left alone.

Two managers that start at the same time cannot disturb each other: the holder of a lock sweeps.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from sessionmgr.process import procfs, tree_tag
from sessionmgr.process.errors import LauncherFailed
from sessionmgr.process.exit_report import LeftRunning
from sessionmgr.process.kill_tagged import TaggedProcessKiller
from sessionmgr.process.private_modes import make_private_directory
from sessionmgr.process.resource_shortage import is_transient_shortage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

log: Final = logging.getLogger("sessionmgr.process")

SUFFIX: Final = ".launcher"
_NEW: Final = ".new"
_NEW_FOR: Final = 3600.0
"""Seconds after which a file that was never finished belongs to no living launcher."""
_LARGEST: Final = 4096
SWEEP_FOR: Final = 5.0
_SWEEP_DESCRIPTORS: Final = 8
"""Descriptors that a sweep may need: without one, a living process looks as if it were gone."""


class BootReport(msgspec.Struct, frozen=True, kw_only=True):
    """Report of the sweep when a launcher was opened."""

    dead: tuple[str, ...] = ()
    """Launchers whose owner had died and left a file."""
    killed: tuple[LeftRunning, ...] = ()
    """Processes of their trees that were killed."""
    left_running: tuple[LeftRunning, ...] = ()
    """Processes of their trees that could not be killed."""
    strange: tuple[str, ...] = ()
    """Files that are broken or not of a launcher, and were left alone."""


class _LauncherRecord(msgspec.Struct, frozen=True, kw_only=True):
    kind: Literal["sessionmgr launcher"] = "sessionmgr launcher"
    version: Literal[1] = 1
    launcher: int
    boot: str
    namespace: str
    pid: int
    started: int


class LauncherRegistration:
    """Registration of a launcher of this process."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    def remove(self) -> None:
        """Remove the registration: all trees have ended."""
        self.path.unlink(missing_ok=True)
        os.close(self._lock)

    def keep_for_sweep(self) -> None:
        """Release the lock and keep the file for the next sweep: processes may be left."""
        os.close(self._lock)


def default_registry_directory() -> Path:
    """Return the default directory of the registry.

    Raises:
        LauncherFailed: This user has no home directory.
    """
    home = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    try:
        return Path(home).expanduser() / "sessionmgr" / "launchers"
    except RuntimeError as error:
        raise LauncherFailed(f"cannot find the state directory: {error}") from error


def register_launcher(directory: Path, launcher: int) -> LauncherRegistration:
    """Register a launcher of this process.

    Raises:
        LauncherFailed: The directory is not writable.
    """
    path = directory / f"{launcher:010x}{SUFFIX}"
    new = directory / f".{path.name}{_NEW}"
    entry = _LauncherRecord(
        launcher=launcher,
        boot=procfs.boot_id(),
        namespace=procfs.pid_namespace(),
        pid=os.getpid(),
        started=procfs.start_time(os.getpid()),
    )
    try:
        make_private_directory(directory)
        lock = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(lock, msgspec.json.encode(entry))
            new.rename(path)
        except BaseException:
            os.close(lock)
            raise
    except OSError as error:
        raise LauncherFailed(f"cannot use the state directory {directory}: {error}") from error
    return LauncherRegistration(path, lock)


def sweep_dead_launchers(directory: Path) -> BootReport:
    """Kill what dead owners left, and remove their registrations.

    Raises:
        LauncherFailed: The directory is unusable, or the system has no descriptors for the sweep.
    """
    found = _SweepResult()
    try:
        paths = sorted(directory.iterdir())
    except FileNotFoundError:
        return BootReport()
    except OSError as error:
        raise LauncherFailed(f"cannot use the state directory {directory}: {error}") from error
    for path in paths:
        try:
            _check_file(path, found)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            if is_transient_shortage(error):
                raise LauncherFailed(f"cannot read {path}: {error}") from error
            log.warning("A file in the state directory was ignored. path=%s error=%s", path, error)
            found.strange.append(str(path))
    return found.report()


class _SweepResult:
    def __init__(self) -> None:
        self.dead: list[str] = []
        self.killed: dict[int, LeftRunning] = {}
        self.left: dict[int, LeftRunning] = {}
        self.strange: list[str] = []

    def report(self) -> BootReport:
        return BootReport(
            dead=tuple(self.dead),
            killed=tuple(self.killed.values()),
            left_running=tuple(self.left.values()),
            strange=tuple(self.strange),
        )


def _check_file(path: Path, found: _SweepResult) -> None:
    with contextlib.ExitStack() as stack:
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return  # its owner ended, or another launcher was faster
        stack.callback(os.close, file)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError("not a regular file")
        if path.name.endswith(_NEW):
            # The owner of a new file takes its lock without waiting, so the sweep must not hold it.
            if time.time() - os.fstat(file).st_mtime > _NEW_FOR and _lock(file):
                path.unlink(missing_ok=True)
            return
        if path.suffix != SUFFIX:
            raise OSError("not a launcher's file")
        locked = _lock(file)
        entry = msgspec.json.decode(os.read(file, _LARGEST), type=_LauncherRecord)
        _ensure_descriptors(file)
        if os.fstat(file).st_nlink and _is_dead(entry, locked=locked):
            _sweep_dead_launcher(path, entry, found)


def _lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_dead(entry: _LauncherRecord, *, locked: bool) -> bool:
    if locked:
        return True
    # The lock is held by the owner, or by a process that it forked. Process numbers are valid only
    # on the machine that assigned them; the holder may be on another one that shares the directory.
    here = procfs.boot_id(), procfs.pid_namespace()
    if not all(here) or (entry.boot, entry.namespace) != here:
        return False
    return procfs.is_running(entry.pid, entry.started) is False


def _ensure_descriptors(file: int) -> None:
    """Return if enough files can be opened for a sweep.

    Raises:
        OSError: They cannot.
    """
    with contextlib.ExitStack() as stack:
        for _ in range(_SWEEP_DESCRIPTORS):
            stack.callback(os.close, os.dup(file))


def _sweep_dead_launcher(path: Path, entry: _LauncherRecord, found: _SweepResult) -> None:
    found.dead.append(f"{entry.launcher:010x}")
    if entry.boot and entry.boot == procfs.boot_id():  # other systems have no /proc
        if any(
            tree_tag.launcher_number(each) == entry.launcher
            for each in tree_tag.process_tags(os.getpid())
        ):
            log.warning(
                "The trees of a dead launcher contain this process and were not killed."
                " launcher=%x",
                entry.launcher,
            )
            return
        if not _kill_launcher_trees(entry.launcher, found):
            log.warning(
                "Some processes of a dead launcher could not be killed; the next start will try"
                " again. path=%s",
                path,
            )
            return
    path.unlink(missing_ok=True)


def _kill_launcher_trees(launcher: int, found: _SweepResult) -> bool:
    def is_of_tree(each: int) -> bool:
        return tree_tag.launcher_number(each) == launcher and tree_tag.tree_number(each) != 0

    def is_of_launcher(each: int) -> bool:
        return tree_tag.launcher_number(each) == launcher

    # Reapers last: one that still works may have children that we cannot see.
    trees = _kill_tagged(is_of_tree, found)
    return _kill_tagged(is_of_launcher, found) and trees


def _kill_tagged(wanted: Callable[[int], bool], found: _SweepResult) -> bool:
    swept = TaggedProcessKiller(wanted).run(SWEEP_FOR)
    found.killed.update(_describe(swept.killed.items()))
    found.left.update(_describe(swept.left.items()))
    return swept.clean


def _describe(processes: Iterable[tuple[int, str]]) -> dict[int, LeftRunning]:
    return {
        pid: LeftRunning(pid=pid, name=name, uid=procfs.owner_uid(pid)) for pid, name in processes
    }
