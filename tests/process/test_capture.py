"""A capture file contains all that a child and its adapter send each other, in order."""

import contextlib
import json
import os
import sys
import threading
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import pytest
import trio
from hypothesis import given, strategies as st
from trio.testing import MockClock

from sessionmgr.process import Command, ProgramNotFound, capture, open_launcher, open_tree
from sessionmgr.process.capture import LONGEST, CaptureFile, CaptureLauncher
from sessionmgr.testing.player import Recording

ECHO = """
import sys
from itertools import pairwise
for line in sys.stdin:
    print(line, end="", flush=True)
print("not JSON", file=sys.stderr)
sys.stdout.write("no newline")
"""


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the end of a child wait for its file, on a busy machine."""
    monkeypatch.setattr(capture, "GRACE", 60.0)


def entries(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


async def test_both_ways_are_kept_in_a_file_of_the_childs_own(tmp_path: Path) -> None:
    directory = tmp_path / "captures"
    command = Command(argv=(sys.executable, "-c", ECHO), cwd="/", env={})
    with trio.fail_after(60):
        async with (
            open_launcher(state_dir=tmp_path / "state") as launcher,
            open_tree(CaptureLauncher(launcher, directory), command) as tree,
        ):
            assert tree.stdin is not None
            await tree.stdin.send_all(b'{"a": 1}\n{"b"')
            await tree.stdin.send_all(b": 2}\n")
            await tree.stdin.aclose()
            heard = b"".join([bytes(data) async for data in tree.stdout])
            complained = b"".join([bytes(data) async for data in tree.stderr])
            await tree.wait_exit()
    assert heard == b'{"a": 1}\n{"b": 2}\nno newline'
    assert complained == b"not JSON\n"
    (path,) = directory.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    assert directory.stat().st_mode & 0o777 == 0o700
    kept = entries(path)
    assert kept[0]["msg"] == {"argv": list(command.argv), "cwd": "/", "pid": tree.pid}
    said = [each.get("msg", each.get("line")) for each in kept if each["dir"] == ">"]
    answered = [each.get("msg", each.get("line")) for each in kept if each["dir"] == "<"]
    assert said == [{"a": 1}, {"b": 2}]
    assert answered == [{"a": 1}, {"b": 2}, "no newline"]
    assert [each["line"] for each in kept if each["dir"] == "!"] == ["not JSON"]
    assert Recording.read(path).playbook()


async def test_a_child_that_does_not_start_is_noted(tmp_path: Path) -> None:
    command = Command(argv=("no-such-program-here",), cwd="/", env={})
    async with open_launcher(state_dir=tmp_path / "state") as launcher:
        with pytest.raises(ProgramNotFound):
            await CaptureLauncher(launcher, tmp_path / "captures").spawn(command)
    (path,) = (tmp_path / "captures").iterdir()
    (kept,) = entries(path)
    assert "no-such-program-here" in json.dumps(kept["msg"])


async def test_launchers_that_share_a_directory_keep_files_of_their_own(tmp_path: Path) -> None:
    command = Command(argv=("no-such-program-here",), cwd="/", env={})
    async with open_launcher(state_dir=tmp_path / "state") as launcher:
        for _ in range(3):
            with pytest.raises(ProgramNotFound):
                await CaptureLauncher(launcher, tmp_path / "captures").spawn(command)
    files = (tmp_path / "captures").iterdir()
    assert len(list(files)) == 3


@given(data=st.binary(max_size=60), cuts=st.lists(st.integers(0, 60)))
async def test_where_it_is_cut_does_not_matter(
    data: bytes, cuts: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    await trio.lowlevel.checkpoint()
    directory = tmp_path_factory.mktemp("cuts")
    places = sorted({0, *(cut for cut in cuts if cut < len(data)), len(data)})
    whole, cut = CaptureFile(directory / "whole"), CaptureFile(directory / "cut")
    whole.record_data("<", data)
    for begin, end in pairwise(places):
        cut.record_data("<", data[begin:end])
    whole.close()
    cut.close()
    assert [{**each, "t": 0} for each in entries(directory / "whole")] == [
        {**each, "t": 0} for each in entries(directory / "cut")
    ]


async def test_a_line_without_end_is_kept_in_pieces(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    await trio.lowlevel.checkpoint()
    kept = CaptureFile(tmp_path / "file")
    kept.record_data("<", b"x" * LONGEST)
    kept.record_data("<", b"yz\n")
    kept.close()
    kept.record_note("too late")
    first, second = entries(tmp_path / "file")
    assert first["note"] == "a piece of a line"
    assert second["line"] == "yz"


def descriptor_of(path: Path) -> int:
    """Return our descriptor of an open file."""
    for each in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the descriptor of the listing itself
            if each.readlink() == path:
                return int(each.name)
    raise LookupError(path)


def reader_of(pipe: int) -> BinaryIO:
    return os.fdopen(pipe, "rb")


async def test_a_disk_that_hangs_stops_nothing_and_what_is_left_out_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture, "ROOM", 100)
    closed = threading.Event()
    kept = CaptureFile(tmp_path / "file", began=trio.current_time(), closed=closed.set)
    read, write = os.pipe()  # a pipe without a reader hangs as a disk does
    os.dup2(write, descriptor_of(tmp_path / "file"))
    os.close(write)
    with trio.fail_after(60), reader_of(read) as pipe:
        for _ in range(3):
            kept.record_data("<", b"x" * 200_000 + b"\n")
        kept.close()
        assert not closed.is_set()
        found = [
            json.loads(line) for line in (await trio.to_thread.run_sync(pipe.read)).splitlines()
        ]
    assert [each["dir"] for each in found] == ["<", "#"]
    assert (len(found[0]["line"]), found[1]["msg"]) == (200_000, {"left_out": 2})


async def test_a_disk_that_is_full_costs_a_file_and_no_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = CaptureFile(tmp_path / "file")
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, descriptor_of(tmp_path / "file"))
    os.close(full)
    await trio.lowlevel.checkpoint()
    kept.record_data("<", b"one\n")
    kept.record_data("<", b"two\n")
    kept.close()
    assert caplog.text.count("A capture file ended early.") == 1
    assert "No space left on device" in caplog.text


NO_ROOM = "can't start new thread"


async def test_a_system_without_room_for_a_thread_costs_a_file_and_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError(NO_ROOM)

    closed = threading.Event()
    kept = CaptureFile(tmp_path / "file", closed=closed.set)
    await trio.lowlevel.checkpoint()
    with monkeypatch.context() as patch:
        patch.setattr(trio.lowlevel, "start_thread_soon", refuse)
        kept.record_data("<", b"one\n")
        kept.record_data("<", b"two\n")
        kept.close()
    assert closed.is_set()
    assert caplog.text.count("A capture file ended early.") == 1
    assert NO_ROOM in caplog.text
