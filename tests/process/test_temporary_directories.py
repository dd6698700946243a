"""Private files of a killed process are removed; those of a live one are not."""

import os
import resource
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from sessionmgr.process import PrivateFiles
from sessionmgr.process.launcher_factory import open_launcher
from sessionmgr.process.temporary_directories import LOCK, remove_stale_directories

OWNER = """
import sys
from sessionmgr.process import PrivateFiles

with PrivateFiles() as files:
    print(files.write("mcp-config", "a token"), flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@contextmanager
def owner(place: Path) -> Generator[tuple[subprocess.Popen[str], Path]]:
    """Run a process that has a private file until it exits or is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER],
        env={**os.environ, "TMPDIR": str(place)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        try:
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def open_files() -> set[str]:
    place = Path("/proc/self/fd")
    listed = [each.name for each in place.iterdir()]
    return {each for each in listed if (place / each).is_symlink()}  # not that of the listing


def names_in(place: Path) -> set[str]:
    return {each.name for each in place.iterdir()}


def test_all_private_files_of_a_process_lie_in_one_directory_that_goes_with_the_last(
    place: Path,
) -> None:
    with PrivateFiles() as one:
        with PrivateFiles() as two:
            assert one.directory != two.directory
            assert one.directory.parent == two.directory.parent
            (base,) = place.iterdir()
            assert stat.S_IMODE(base.stat().st_mode) == 0o700
            assert stat.S_IMODE((base / LOCK).stat().st_mode) == 0o600
        assert one.write("a", "b").read_text() == "b"
    assert list(place.iterdir()) == []


def test_what_is_used_here_is_not_taken_for_abandoned(place: Path) -> None:
    with PrivateFiles() as files:
        path = files.write("a", "b")
        assert remove_stale_directories() == []
        assert path.exists()


def test_files_are_written_where_a_cleaner_has_taken_the_directory_away(place: Path) -> None:
    before = open_files()
    with PrivateFiles() as one:
        one.directory.parent.rename(place / "gone")
        with PrivateFiles() as two:
            assert two.write("a", "b").read_text() == "b"
    assert open_files() <= before


@contextmanager
def no_descriptors() -> Generator[None]:
    """Let this process open no further file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
    try:
        with suppress(OSError):
            while True:
                taken.append(os.dup(0))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for each in taken:
            os.close(each)


def test_without_descriptors_nothing_is_left_behind(place: Path) -> None:
    before = open_files()
    with (
        no_descriptors(),
        pytest.raises(OSError, match="Too many open files"),
        PrivateFiles(),
    ):
        pytest.fail("it has a directory")
    assert list(place.iterdir()) == []
    assert open_files() <= before


async def test_a_launcher_removes_what_the_dead_have_left_and_nothing_else(
    place: Path, tmp_path: Path
) -> None:
    (place / "sessionmgr-ses_1").mkdir()  # without a lock, its owner is unknown
    (place / "sessionmgr-link").symlink_to(place / "sessionmgr-ses_1")
    (place / "sessionmgr-file").touch()
    with owner(place) as (_, alive), owner(place) as (process, dead):
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert dead.read_text() == "a token"
        async with open_launcher(state_dir=tmp_path / "launchers"):
            assert not dead.parent.parent.exists()
            assert alive.read_text() == "a token"
    left = {"sessionmgr-ses_1", "sessionmgr-link", "sessionmgr-file", "launchers"}
    assert left < names_in(place)
    assert remove_stale_directories() == [alive.parent.parent]


def test_a_process_that_ends_well_leaves_nothing(place: Path) -> None:
    with owner(place) as (process, path):
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
        assert not path.parent.parent.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can have a directory be another's")
def test_what_is_another_users_is_left_to_him(place: Path) -> None:
    theirs = place / "sessionmgr-x"
    theirs.mkdir()
    (theirs / LOCK).touch()
    os.chown(theirs, 65534, 65534)
    assert remove_stale_directories() == []
    assert theirs.exists()
