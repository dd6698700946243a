"""Registry of launchers: which ones count as dead, what is swept, what is left alone."""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio

from sessionmgr.process import LauncherFailed, launcher_registry, procfs, tree_tag
from sessionmgr.process.kill_tagged import TaggedProcessKiller
from sessionmgr.process.launcher_factory import open_launcher
from sessionmgr.process.linux.launcher import (
    _kill_exact as kill_if_it_is,  # pyright: ignore[reportPrivateUsage]
)

TAGGED = """
import resource, subprocess, sys, time
resource.setrlimit(10, (int(sys.argv[1]), resource.getrlimit(10)[1]))
print(flush=True)
time.sleep(1000)
"""


@contextmanager
def tagged(number: int) -> Generator[subprocess.Popen[bytes]]:
    """Run a process that this tag alone identifies."""
    program = [sys.executable, "-I", "-S", "-c", TAGGED, str(number)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, env={}) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield process
        finally:
            process.kill()


def die(registration: launcher_registry.LauncherRegistration) -> None:
    """Release the lock, as the kernel does at the owner's death."""
    registration.keep_for_sweep()


def test_what_a_dead_launcher_left_is_killed_and_its_file_removed(tmp_path: Path) -> None:
    launcher, other = tree_tag.new_launcher_number(), tree_tag.new_launcher_number()
    die(launcher_registry.register_launcher(tmp_path, launcher))
    with (
        tagged(tree_tag.make_tag(launcher, 5)) as ours,
        tagged(tree_tag.make_tag(other, 5)) as foreign,
    ):
        report = launcher_registry.sweep_dead_launchers(tmp_path)
        assert report.dead == (f"{launcher:010x}",)
        assert [each.pid for each in report.killed] == [ours.pid]
        assert ours.wait(60) == -9
        assert foreign.poll() is None
    assert list(tmp_path.iterdir()) == []


def test_a_stuck_reaper_is_killed_too(tmp_path: Path) -> None:
    launcher = tree_tag.new_launcher_number()
    die(launcher_registry.register_launcher(tmp_path, launcher))
    with tagged(tree_tag.make_tag(launcher, 0)) as reaper:
        assert [each.pid for each in launcher_registry.sweep_dead_launchers(tmp_path).killed] == [
            reaper.pid
        ]


def test_a_launcher_that_lives_is_left_in_peace(tmp_path: Path) -> None:
    launcher = tree_tag.new_launcher_number()
    registration = launcher_registry.register_launcher(tmp_path, launcher)
    with tagged(tree_tag.make_tag(launcher, 1)) as neighbour:
        assert launcher_registry.sweep_dead_launchers(tmp_path) == launcher_registry.BootReport()
        assert neighbour.poll() is None
    assert registration.path.exists()
    registration.remove()
    assert not registration.path.exists()


def rewrite(path: Path, **fields: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def test_a_lock_that_a_forked_copy_holds_saves_no_dead_owner(tmp_path: Path) -> None:
    launcher = tree_tag.new_launcher_number()
    registration = launcher_registry.register_launcher(tmp_path, launcher)
    rewrite(registration.path, started=1)  # our pid, but another start time: the number was reused
    with tagged(tree_tag.make_tag(launcher, 1)) as left:
        assert [each.pid for each in launcher_registry.sweep_dead_launchers(tmp_path).killed] == [
            left.pid
        ]
    # Without its start time the owner's number proves nothing.
    registration = launcher_registry.register_launcher(tmp_path, launcher)
    rewrite(registration.path, started=0)
    assert launcher_registry.sweep_dead_launchers(tmp_path) == launcher_registry.BootReport()
    # Numbers of another namespace prove nothing.
    registration = launcher_registry.register_launcher(tmp_path, launcher)
    rewrite(registration.path, started=1, namespace="pid:[1]")
    assert launcher_registry.sweep_dead_launchers(tmp_path) == launcher_registry.BootReport()


def test_the_numbers_of_another_boot_mean_nothing(tmp_path: Path) -> None:
    launcher = tree_tag.new_launcher_number()
    registration = launcher_registry.register_launcher(tmp_path, launcher)
    rewrite(registration.path, boot="another")
    assert (
        launcher_registry.sweep_dead_launchers(tmp_path) == launcher_registry.BootReport()
    )  # on another machine that shares the home directory
    die(registration)
    with tagged(tree_tag.make_tag(launcher, 1)) as process:
        report = launcher_registry.sweep_dead_launchers(tmp_path)
        assert report.dead == (f"{launcher:010x}",)
        assert report.killed == ()
        assert process.poll() is None
    assert not registration.path.exists()


def test_a_pid_that_was_reused_is_never_killed(tmp_path: Path) -> None:
    with tagged(1) as innocent:
        registration = launcher_registry.register_launcher(tmp_path, tree_tag.new_launcher_number())
        rewrite(registration.path, pid=innocent.pid, started=1)
        die(registration)
        launcher_registry.sweep_dead_launchers(tmp_path)
        kill_if_it_is(innocent.pid, 1)
        assert innocent.poll() is None
        kill_if_it_is(innocent.pid, procfs.start_time(innocent.pid))
        assert innocent.wait(60) == -9


def test_a_number_that_passes_to_another_while_it_is_looked_at_is_not_killed() -> None:
    # The pidfd is of the first process; when its tag is read the number is another's.
    number = tree_tag.make_tag(tree_tag.new_launcher_number(), 1)
    asked: list[int] = []

    def wanted(each: int) -> bool:
        if each == number and not asked:
            asked.append(each)
            first.kill()
            first.wait()
        return each == number

    with tagged(number) as first:
        sweep = TaggedProcessKiller(wanted)
        sweep.scan()
        assert asked == [number]
        assert sweep.killed == {}


def test_a_sweep_comes_to_its_end_though_the_machine_has_used_up_its_time() -> None:
    number = tree_tag.make_tag(tree_tag.new_launcher_number(), 1)
    with tagged(number) as left:
        sweep = TaggedProcessKiller(lambda each: each == number).run(0)
        assert left.wait(60) == -9
    assert sweep.clean
    assert sweep.left == {}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("notes.txt", "mine"),
        ("ff.launcher", ""),
        ("ff.launcher", "{"),
        ("ff.launcher", "\udcff"),
        ("ff.launcher", '{"kind": "another thing"}'),
        ("ff.launcher", "x" * 100_000),
    ],
)
def test_a_strange_file_is_named_and_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, text: str
) -> None:
    path = tmp_path / name
    path.write_text(text, errors="surrogateescape")
    assert launcher_registry.sweep_dead_launchers(tmp_path) == launcher_registry.BootReport(
        strange=(str(path),)
    )
    assert str(path) in caplog.text
    assert path.read_text(errors="surrogateescape") == text


def test_what_is_no_file_is_named_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.launcher").mkdir()
    (tmp_path / "b.launcher").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "c.launcher")
    assert launcher_registry.sweep_dead_launchers(tmp_path).strange == tuple(
        str(tmp_path / f"{n}.launcher") for n in "abc"
    )
    assert len(list(tmp_path.iterdir())) == 3


def test_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    registration = launcher_registry.register_launcher(tmp_path, tree_tag.new_launcher_number())
    rewrite(registration.path, version=2)
    die(registration)
    assert launcher_registry.sweep_dead_launchers(tmp_path).strange == (str(registration.path),)


def test_a_new_file_is_not_reported_and_an_abandoned_one_is_removed(tmp_path: Path) -> None:
    new = tmp_path / ".ff.launcher.new"
    new.write_text("")
    assert launcher_registry.sweep_dead_launchers(tmp_path) == launcher_registry.BootReport()
    assert new.exists()
    os.utime(new, (0, 0))
    with new.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        launcher_registry.sweep_dead_launchers(tmp_path)
        assert new.exists()
    launcher_registry.sweep_dead_launchers(tmp_path)
    assert not new.exists()


def test_a_file_that_is_being_born_is_not_locked_by_who_looks_at_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its owner does not wait for the lock, and another launcher may release it late.
    new = tmp_path / ".ff.launcher.new"
    new.write_text("")
    locked: list[int] = []

    def flock(file: int, operation: int) -> None:
        locked.append(operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    assert launcher_registry.sweep_dead_launchers(tmp_path) == launcher_registry.BootReport()
    assert locked == []


async def test_managers_that_start_at_once_sweep_once_and_spare_each_other(tmp_path: Path) -> None:
    launcher = tree_tag.new_launcher_number()
    die(launcher_registry.register_launcher(tmp_path, launcher))
    reports: list[launcher_registry.BootReport] = []

    async def manage() -> None:
        async with open_launcher(state_dir=tmp_path) as opened:
            reports.append(opened.boot)
            Meeting.arrive()
            await Meeting.all_here.wait()

    class Meeting:
        count = 0
        all_here = trio.Event()

        @classmethod
        def arrive(cls) -> None:
            cls.count += 1
            if cls.count == 4:
                cls.all_here.set()

    with tagged(tree_tag.make_tag(launcher, 1)) as left:
        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(manage)
    killers = [report for report in reports if report.killed]
    assert [each.pid for each in killers[0].killed] == [left.pid]
    assert len(killers) == 1
    assert not any(report.strange for report in reports)
    assert os.listdir(tmp_path) == []  # noqa: PTH208


async def test_a_state_directory_that_is_none_is_named(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("")
    with pytest.raises(LauncherFailed, match=str(path)):
        async with open_launcher(state_dir=path):
            pass
    with pytest.raises(LauncherFailed, match=str(path / "below")):
        async with open_launcher(state_dir=path / "below"):
            pass


def test_the_default_directory_is_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/x")
    assert launcher_registry.default_registry_directory() == Path("/x/sessionmgr/launchers")
    monkeypatch.setenv("XDG_STATE_HOME", "")
    monkeypatch.setenv("HOME", "/home/me")
    assert launcher_registry.default_registry_directory() == Path(
        "/home/me/.local/state/sessionmgr/launchers"
    )


def test_the_namespace_is_that_of_the_numbers_and_of_the_clock() -> None:
    pids, clock = procfs.pid_namespace().split()
    assert pids == os.readlink("/proc/self/ns/pid")  # noqa: PTH115
    assert clock == os.readlink("/proc/self/ns/time")  # noqa: PTH115
