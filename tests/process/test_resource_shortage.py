"""When the system has no room for another child, a start waits for a limited time."""

import errno
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import trio

from sessionmgr.adapter.kit.run_end import start_failure
from sessionmgr.process import (
    DescriptorsExhausted,
    LauncherFailed,
    ProcessError,
    ProgramNotFound,
    SpawnerKilled,
    SpawnFailed,
    is_transient_shortage,
)
from sessionmgr.process.resource_shortage import RETRY_FOR, retry_on_shortage

FULL = DescriptorsExhausted(100, 90, 8, 32)


def caused_by(cause: Exception) -> Exception:
    error = LauncherFailed("the spawner did not start")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "passing"),
    [
        (FULL, True),
        (OSError(errno.EMFILE, "x"), True),
        (OSError(errno.ENFILE, "x"), True),
        (SpawnFailed("cannot create a reaper process", "", errno.EAGAIN), True),
        (SpawnFailed("the system refused to start the program", "x", errno.ENOMEM), True),
        (caused_by(BlockingIOError(errno.EAGAIN, "x")), True),
        (RuntimeError("can't start new thread"), True),
        (RuntimeError("another"), False),
        (OSError(errno.ENOENT, "x"), False),
        (ProgramNotFound("program not found", "x", errno.ENOENT), False),
        (SpawnerKilled("x"), False),
        (caused_by(OSError(errno.EROFS, "x")), False),
    ],
)
def test_only_a_lack_of_room_passes(error: Exception, passing: bool) -> None:
    assert is_transient_shortage(error) is passing
    if isinstance(error, ProcessError):
        assert start_failure(error).retryable is passing


class FailingStart:
    """Fails a number of times, and then starts something."""

    def __init__(self, error: Exception, times: int) -> None:
        self.error, self.left = error, times

    async def __call__(self) -> str:
        await trio.lowlevel.checkpoint()
        self.left -= 1
        if self.left >= 0:
            raise self.error
        return "started"


def yes() -> bool:
    return True


async def test_a_start_waits_for_room(autojump_clock: object) -> None:
    assert await retry_on_shortage(FailingStart(OSError(errno.EAGAIN, "x"), 10)) == "started"
    assert await retry_on_shortage(FailingStart(FULL, 10), yes) == "started"
    assert 0 < trio.current_time() < RETRY_FOR


async def test_a_start_that_finds_no_room_in_time_fails(autojump_clock: object) -> None:
    with pytest.raises(DescriptorsExhausted):
        await retry_on_shortage(FailingStart(FULL, 10**6), yes)
    assert RETRY_FOR <= trio.current_time() <= RETRY_FOR + 1


@pytest.mark.parametrize(
    "error", [SpawnerKilled("x"), FULL], ids=["another error", "no other child"]
)
async def test_what_does_not_pass_is_not_waited_for(
    autojump_clock: object, error: Exception
) -> None:
    with pytest.raises(type(error)):
        await retry_on_shortage(FailingStart(error, 1))
    assert trio.current_time() == 0


FEW = """
import resource, sys, trio
from pathlib import Path
from sessionmgr.process import Command, LauncherKind, open_launcher, open_tree, resource_shortage
resource_shortage.RETRY_FOR = 200.0  # for all of them together, on a machine that does much else
resource.setrlimit(resource.RLIMIT_NOFILE, (90, 90))
count = 0
async def one(launcher):
    global count
    command = Command(argv=("sleep", "0.2"), cwd="/", env={"PATH": "/usr/bin:/bin"})
    async with open_tree(launcher, command) as tree:
        assert (await tree.wait_exit()).exit_code == 0
        count += 1
async def main():
    with trio.fail_after(240):
        kind = LauncherKind(sys.argv[2])
        async with open_launcher(state_dir=Path(sys.argv[1]), kind=kind) as launcher:
            async with trio.open_nursery() as nursery:
                for _ in range(30):
                    nursery.start_soon(one, launcher)
trio.run(main)
assert count == 30
"""


@pytest.mark.parametrize("kind", ["spawner", "direct"])
def test_more_children_at_once_than_there_are_descriptors_for_are_all_started(
    tmp_path_factory: pytest.TempPathFactory, kind: str
) -> None:
    place = str(tmp_path_factory.mktemp("state"))
    command = [sys.executable, "-c", textwrap.dedent(FEW), place, kind]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


NONE_LEFT = """
import os, resource, sys, threading, trio
from pathlib import Path
from sessionmgr.process import Command, open_launcher, open_tree
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
taken = []
async def main():
    await trio.to_thread.run_sync(len, "")  # starts trio's worker thread beforehand
    try:
        while True:
            taken.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    async def give_back():
        await trio.sleep(0.5)
        while taken:
            os.close(taken.pop())
    echo = Command(argv=("echo", "well"), cwd="/", env={"PATH": "/usr/bin:/bin"})
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(give_back)
            async with open_launcher(state_dir=Path(sys.argv[1])) as launcher:
                async with open_tree(launcher, echo) as tree:
                    print((await tree.stdout.receive_some()).decode(), type(launcher).__name__)
trio.run(main)
"""


def test_a_launcher_waits_for_descriptors_and_makes_do_with_nothing_weaker(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-c", NONE_LEFT, str(tmp_path / "state")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "well\n SpawnerLauncher\n"), done.stderr


FEW_LEFT = """
import os, resource, subprocess, sys
from pathlib import Path
from sessionmgr.process import LauncherFailed, is_transient_shortage, launcher_registry, tree_tag
def swept(place, left):
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    taken = []
    try:
        while True:
            taken.append(os.dup(0))
    except OSError:
        pass
    for _ in range(left):
        os.close(taken.pop())
    try:
        return launcher_registry.sweep_dead_launchers(place)
    except LauncherFailed as error:
        assert is_transient_shortage(error), error
    for each in taken:
        os.close(each)
    return launcher_registry.sweep_dead_launchers(place)
place, launcher = Path(sys.argv[1]), tree_tag.new_launcher_number()
launcher_registry.register_launcher(place, launcher).keep_for_sweep()
tagged = lambda: tree_tag.set_tag(tree_tag.make_tag(launcher, 5))
with subprocess.Popen(["sleep", "1000"], preexec_fn=tagged) as orphan:
    try:
        report = swept(place, int(sys.argv[2]))
    finally:
        orphan.kill()
assert [each.pid for each in report.killed] == [orphan.pid], report
assert list(place.iterdir()) == []
"""


@pytest.mark.parametrize("left", range(10))
def test_a_sweep_without_descriptors_takes_no_process_for_gone(tmp_path: Path, left: int) -> None:
    command = [sys.executable, "-c", FEW_LEFT, str(tmp_path / "state"), str(left)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
