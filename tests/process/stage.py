"""Where owners are started, watched and killed: what a test of child trees needs.

It finds processes in two ways which share nothing: by the mark that they carry, and by what
they noted of themselves in a file.
"""

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from sessionmgr.process import mark, proc

ROOT = Path(__file__).parents[2]
NOBODY = 65534
WITHIN = 1.0
"""Seconds until a tree is to be empty."""
USERS = ["root", "nobody"] if os.getuid() == 0 else ["user"]


def carriers(launcher: int) -> list[int]:
    """Return the live processes of a launcher's trees, not its warden and guards."""
    return [
        pid for pid, each in _marked() if mark.launcher_of(each) == launcher and mark.tree_of(each)
    ]


def crew(launcher: int) -> list[int]:
    """Return a launcher's warden and guards."""
    marks = mark.mark_of(launcher, 0)
    return [pid for pid, each in _marked() if each == marks]


def _marked() -> Iterable[tuple[int, int]]:
    for pid in proc.pids():
        for each in mark.marks_of(pid):
            if is_alive(pid):
                yield pid, each


def is_alive(pid: int, started: int | None = None) -> bool:
    found = proc.stat(pid)
    if found is None or (started is not None and found.started != started):
        return False
    return found.state not in (b"Z", b"X")


def noted(notes: Path) -> list[tuple[int, int]]:
    """Return pid and start of whoever noted itself; in its own PID namespace, perhaps."""
    if not notes.exists():
        return []
    lines = notes.read_text().splitlines()
    return [(int(pid), int(start)) for pid, start in map(str.split, lines)]


def left(launcher: int, notes: Path) -> list[int]:
    """Return whatever lives of a launcher's trees."""
    return sorted(
        {*carriers(launcher), *(pid for pid, start in noted(notes) if is_alive(pid, start))}
    )


async def until_empty(launcher: int, notes: Path, within: float = WITHIN) -> float:
    """Wait until nothing lives; return the seconds it took. Fails after `within`."""
    begin = time.monotonic()
    while alive := left(launcher, notes):
        if time.monotonic() - begin > within:
            names = [(pid, found.name, found.parent) for pid in alive if (found := proc.stat(pid))]
            raise AssertionError(f"after {within} s there are {names}")
        await trio.sleep(0.005)
    return time.monotonic() - begin


def kill(*pids: int) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


class Owner:
    """An owner's process, and what it told."""

    def __init__(self, process: trio.Process, notes: Path) -> None:
        self.process = process
        self.notes = notes
        self.launcher = 0
        self.warden = 0
        self.guards: list[int] = []
        self.boot: list[int] = []
        self._lines = b""

    @property
    def pid(self) -> int:
        return self.process.pid

    async def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        while b"\n" not in self._lines:
            piece = await self.process.stdout.receive_some()
            if not piece:
                raise AssertionError("the owner ended")
            self._lines += piece
        line, _, self._lines = self._lines.partition(b"\n")
        heard: dict[str, Any] = json.loads(line)
        return heard

    async def tell(self, order: str) -> None:
        assert self.process.stdin is not None
        await self.process.stdin.send_all(order.encode() + b"\n")

    async def until_noted(self, count: int) -> None:
        """Wait until so many processes have noted themselves."""
        with trio.fail_after(30):
            while len(noted(self.notes)) < count:
                await trio.sleep(0.005)


def as_nobody() -> list[str]:
    """Return what to put before a command that an ordinary user is to run."""
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv (util-linux) is not here: nobody cannot be an ordinary user")
    found = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    if not _is_for_all(Path(sys.executable).resolve()) or not _is_for_all(ROOT):
        # Python lives in a home of root's: nobody may read there, and nothing more than that.
        found += [f"--{each}=-all,+dac_read_search" for each in ("inh-caps", "ambient-caps")]
    return found


def _is_for_all(path: Path) -> bool:
    return all(each.stat().st_mode & 0o001 for each in (path, *path.parents))


def _open_way(place: Path) -> None:
    """Let everybody into this directory; those above, which pytest made, are root's alone."""
    for each in place.parents:
        if not each.stat().st_mode & 0o001:
            each.chmod(0o711)
    place.chmod(0o777)


@asynccontextmanager
async def owner(
    place: Path, user: str, *shapes: str, state: Path | None = None
) -> AsyncGenerator[Owner, None]:
    """Run an owner of trees of these shapes, as this user; at the end nothing of it is left."""
    place.mkdir(exist_ok=True)
    notes = place / "notes"
    state = state or place / "state"
    if user == "nobody":
        _open_way(place)
    process = await trio.lowlevel.open_process(
        [
            *(as_nobody() if user == "nobody" else ()),
            *(sys.executable, "-m", "tests.process.owner", str(state), str(notes), *shapes),
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
    run = Owner(process, notes)
    try:
        with trio.fail_after(60):
            told = await run.hear()
        run.launcher, run.warden = told["launcher"], told["warden"]
        run.guards, run.boot = told["guards"], told["boot"]
        yield run
    finally:
        with trio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
            await process.wait()
            assert process.stdin is not None
            assert process.stdout is not None
            await process.stdin.aclose()
            await process.stdout.aclose()
            _clean_up(run)


def _clean_up(run: Owner) -> None:
    if not run.launcher:
        return
    for _ in range(200):
        alive = [*left(run.launcher, run.notes), *crew(run.launcher)]
        if not alive:
            return
        for pid in alive:
            os.kill(pid, signal.SIGCONT)
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)
