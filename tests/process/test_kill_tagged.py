"""Killing the processes of a tree: none of them continues because another one has died."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio

from sessionmgr.process import procfs, tree_tag
from sessionmgr.process.kill_by_env import kill_processes_with_env
from sessionmgr.process.kill_tagged import TaggedProcessKiller

FAMILY = """
import resource, subprocess, sys
resource.setrlimit(10, (int(sys.argv[1]), resource.getrlimit(10)[1]))
child = "import sys, time; print(flush=True); time.sleep(1000)"
with subprocess.Popen([sys.executable, "-I", "-S", "-c", child], stdout=subprocess.PIPE) as process:
    process.stdout.readline()
    print(process.pid, flush=True)
"""
# So many other processes are between the shell and its child that it would have the time.
SHELL = """
for each in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24; do sleep 1000 & done
sleep 1000 &
echo ready
wait $!
echo went on >went-on
"""

TAGGED = """
import resource, sys, time
resource.setrlimit(10, (int(sys.argv[1]), resource.getrlimit(10)[1]))
print(flush=True)
time.sleep(1000)
"""

BEGINNING = """
import os, resource, sys
resource.setrlimit(10, (int(sys.argv[1]), resource.getrlimit(10)[1]))
print(flush=True)
sys.stdin.readline()
os.execve("/bin/sh", ["sh", "-c", "echo; read x"], {"THREAD": "one"})
"""


@contextmanager
def family(number: int) -> Generator[tuple[int, int]]:
    """Run a process with this tag that waits for a child of its own."""
    program = [sys.executable, "-I", "-S", "-c", FAMILY, str(number)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, env={}) as parent:
        try:
            assert parent.stdout is not None
            yield parent.pid, int(parent.stdout.readline())
        finally:
            TaggedProcessKiller(lambda each: each == number).run(10)


@contextmanager
def tagged(limit: int, *around: int) -> Generator[subprocess.Popen[bytes]]:
    """Run a process with this tag in its limit, and those in its environment."""
    value = ":".join(map(tree_tag.format_tag, around))
    command = [sys.executable, "-I", "-S", "-c", TAGGED, str(limit)]
    env = {tree_tag.VARIABLE: value} if around else {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield process
        finally:
            process.kill()


def test_what_a_launcher_inside_a_tree_has_started_is_killed_whatever_else_it_carries() -> None:
    outer, inner = tree_tag.new_launcher_number(), tree_tag.new_launcher_number()
    tree, own = tree_tag.make_tag(outer, 5), tree_tag.make_tag(inner, 7)
    with (
        tagged(own) as bare,  # started without an environment
        tagged(tree_tag.make_tag(inner, 0), tree) as spawner,
    ):
        assert TaggedProcessKiller(lambda each: each == tree).run(10).clean
        assert [each.wait(60) for each in (bare, spawner)] == [-signal.SIGKILL] * 2


def test_a_launcher_around_a_tree_is_spared_with_all_that_it_has_started() -> None:
    around, inner = tree_tag.new_launcher_number(), tree_tag.new_launcher_number()
    outer, tree = tree_tag.make_tag(around, 5), tree_tag.make_tag(inner, 7)
    with (
        tagged(tree_tag.make_tag(around, 6)) as other,
        # Where a limit cannot be raised any more, it is still that of the surrounding tree.
        tagged(outer, outer, tree) as inside,
    ):
        assert TaggedProcessKiller(lambda each: each == tree).run(10).clean
        assert inside.wait(60) == -signal.SIGKILL
        assert other.poll() is None


def test_who_waits_for_a_marked_process_is_killed_before_it() -> None:
    number = tree_tag.make_tag(tree_tag.new_launcher_number(), 5)
    with family(number) as (parent, child):
        sweep = TaggedProcessKiller(lambda each: each == number)
        assert sweep.scan() >= 1
        assert list(sweep.killed) == [parent, child]


def test_an_ancestor_without_the_mark_is_spared() -> None:
    number = tree_tag.make_tag(tree_tag.new_launcher_number(), 5)
    with family(number):
        sweep = TaggedProcessKiller(lambda each: each == number)
        sweep.run(10)
        assert os.getpid() not in sweep.killed
        assert os.getppid() not in sweep.killed


def test_a_shell_that_waits_for_a_straggler_begins_no_further_command(tmp_path: Path) -> None:
    tree = tree_tag.format_tag(tree_tag.make_tag(tree_tag.new_launcher_number(), 5))
    env = {"PATH": os.environ["PATH"], tree_tag.VARIABLE: tree, "THREAD": "one"}
    program = ["/bin/sh", "-c", SHELL]
    with subprocess.Popen(program, stdout=subprocess.PIPE, cwd=tmp_path, env=env) as shell:
        assert shell.stdout is not None
        shell.stdout.readline()
        assert trio.run(kill_processes_with_env, tree, "THREAD", "one") == 26
        shell.stdout.read()  # to its end: none of them is left
    assert not (tmp_path / "went-on").exists()


def test_a_straggler_that_begins_its_program_just_now_is_looked_at_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    number = tree_tag.make_tag(tree_tag.new_launcher_number(), 5)
    program = [sys.executable, "-I", "-S", "-c", BEGINNING, str(number)]
    pids, looks = procfs.pids, list[int]()

    def look() -> list[int]:
        looks.append(process.pid)
        if len(looks) == 2:  # the system has a program's environment only after a moment
            print(file=process.stdin, flush=True)
            said.readline()
        return pids()

    monkeypatch.setattr(procfs, "pids", look)
    pipe = subprocess.PIPE
    with subprocess.Popen(program, stdin=pipe, stdout=pipe, env={}, text=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout
            said.readline()
            assert (
                trio.run(kill_processes_with_env, tree_tag.format_tag(number), "THREAD", "one") == 1
            )
            assert process.wait(60) == -9
        finally:
            process.kill()
