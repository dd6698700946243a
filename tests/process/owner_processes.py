"""Owner processes for tests of child trees: start, watch and kill them.

It finds processes in three independent ways: by their tag, by the process numbers that they write
to a file, and by a subreaper above them, which ends when no process below it is left.
"""

import contextlib
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from sessionmgr.process import procfs, tree_tag

ROOT: Final = Path(__file__).parents[2]
SUBREAPER: Final = str(Path(__file__).with_name("subreaper_program.py"))
NOBODY: Final = 65534
WITHIN: Final = float(os.environ.get("SESSIONMGR_TEST_WITHIN", "30"))
"""Seconds until a tree must be empty: one on an idle machine, but few are idle."""
PATIENCE: Final = 60.0
"""Time limit in seconds for what has no limit of its own, on a busy machine."""
USERS: Final = ["root", "nobody"] if os.getuid() == 0 else ["user"]


def tagged_processes(launcher: int) -> list[int]:
    """Return the live processes of a launcher's trees, not its spawner and reapers."""
    return [
        pid
        for pid, each in _tagged()
        if tree_tag.launcher_number(each) == launcher and tree_tag.tree_number(each)
    ]


def owner_helpers(launcher: int) -> list[int]:
    """Return a launcher's spawner and reapers."""
    return [pid for pid, each in _tagged() if each == tree_tag.make_tag(launcher, 0)]


def _tagged() -> Iterable[tuple[int, int]]:
    for pid in procfs.pids():
        if is_alive(pid):
            for each in tree_tag.process_tags(pid):
                yield pid, each


def is_alive(pid: int, started: int | None = None) -> bool:
    found = procfs.read_stat(pid)
    if found is None or (started is not None and found.started != started):
        return False
    return found.state not in (b"Z", b"X")


def kill(*pids: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # it may have died because another one did
            os.kill(pid, signal.SIGKILL)


class OwnerProcess:
    """Process of an owner, and what it reported."""

    def __init__(self, subreaper: trio.Process, notes: Path) -> None:
        self.subreaper = subreaper
        self.notes = notes
        self.pid = 0
        self.launcher = 0
        self.spawner = 0
        self.reapers: list[int] = []
        self.boot: dict[str, Any] = {}
        self._lines = b""

    async def read_report(self) -> dict[str, Any]:
        """Return the next report."""
        assert self.subreaper.stdout is not None
        while b"\n" not in self._lines:
            piece = await self.subreaper.stdout.receive_some()
            if not piece:
                raise AssertionError("the owner ended")
            self._lines += piece
        line, _, self._lines = self._lines.partition(b"\n")
        report: dict[str, Any] = json.loads(line)
        return report

    async def send(self, command: str) -> None:
        """Send a command."""
        assert self.subreaper.stdin is not None
        await self.subreaper.stdin.send_all(command.encode() + b"\n")

    def noted(self) -> list[tuple[int, int]]:
        """Return pid and start time of each process that has noted itself."""
        lines = self.notes.read_text().splitlines() if self.notes.exists() else []
        return [(int(pid), int(start)) for pid, start in map(str.split, lines)]

    async def until_noted(self, count: int) -> None:
        """Wait until so many processes have noted themselves."""
        await until(lambda: len(self.noted()) >= count)

    def left(self) -> list[int]:
        """Return the living processes of its trees."""
        noted = (pid for pid, start in self.noted() if is_alive(pid, start))
        return sorted({*tagged_processes(self.launcher), *noted})

    async def until_empty(self, within: float = WITHIN) -> float:
        """Wait until its trees are empty; return the seconds that it took."""
        begin = time.monotonic()
        while alive := self.left():
            if time.monotonic() - begin > within:
                names = [
                    (pid, found.name, found.parent)
                    for pid in alive
                    if (found := procfs.read_stat(pid))
                ]
                raise AssertionError(f"after {within} s there are {names}")
            await trio.sleep(0.005)
        return time.monotonic() - begin

    async def until_nothing(self, within: float = WITHIN) -> None:
        """Wait until no process is left below the subreaper, spawner and reapers included."""
        with trio.move_on_after(within):
            await self.subreaper.wait()
            return
        alive = procfs.descendants([self.subreaper.pid])
        names = [
            (pid, found.name, found.state) for pid in alive if (found := procfs.read_stat(pid))
        ]
        raise AssertionError(f"after {within} s there are {names}")


async def until(came: Callable[[], bool], within: float = PATIENCE) -> None:
    """Wait for a condition that sends no notification."""
    with trio.fail_after(within):  # noqa: ASYNC912
        while not came():  # noqa: ASYNC110  # the state of other processes
            await trio.sleep(0.005)


def as_ordinary_user() -> list[str]:
    """Return the start of a command line that an ordinary user runs."""
    if shutil.which("setpriv") is None:
        pytest.skip("no setpriv (util-linux) to become an ordinary user")
    found = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    if not _is_for_all(Path(sys.executable).resolve()) or not _is_for_all(ROOT):
        # Python is in root's home: allow the user to read there, and nothing more.
        found += [f"--{each}=-all,+dac_read_search" for each in ("inh-caps", "ambient-caps")]
    return found


def _is_for_all(path: Path) -> bool:
    return all(each.stat().st_mode & 0o001 for each in (path, *path.parents))


def open_to_all_users(place: Path) -> None:
    """Let all users enter this directory; pytest made those above it for root alone."""
    place.mkdir(exist_ok=True)
    for each in place.parents:
        if not each.stat().st_mode & 0o001:
            each.chmod(0o711)
    place.chmod(0o777)


@asynccontextmanager
async def owner(
    place: Path, user: str, *shapes: str, state: Path | None = None
) -> AsyncGenerator[OwnerProcess, None]:
    """Run an owner of trees of these shapes, as this user; at the end no process of it is left."""
    open_to_all_users(place)
    notes = place / "notes"
    program = (sys.executable, "-m", "tests.process.owner_program")
    subreaper = await trio.lowlevel.open_process(
        [
            *(sys.executable, "-I", "-S", SUBREAPER),
            *(as_ordinary_user() if user == "nobody" else ()),
            *(*program, str(state or place / "state"), str(notes), *shapes),
        ],
        stdin=-1,
        stdout=-1,
        cwd=ROOT,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(place),
            "TMPDIR": str(place),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
    )
    run = OwnerProcess(subreaper, notes)
    try:
        with trio.fail_after(PATIENCE):
            report = await run.read_report()
        run.pid, run.launcher, run.spawner = report["pid"], report["launcher"], report["spawner"]
        run.reapers, run.boot = report["reapers"], report["boot"]
        yield run
    finally:
        with trio.CancelScope(shield=True):
            await _clean_up(run)


async def _clean_up(run: OwnerProcess) -> None:
    """Kill the processes below the subreaper until it ends because none is left."""
    while run.subreaper.returncode is None:
        for pid in procfs.descendants([run.subreaper.pid])[1:]:
            for number in (signal.SIGCONT, signal.SIGKILL):
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    break
        with trio.move_on_after(0.005):
            await run.subreaper.wait()
    assert run.subreaper.stdin is not None
    assert run.subreaper.stdout is not None
    await run.subreaper.stdin.aclose()
    await run.subreaper.stdout.aclose()
