"""Our files are private, and other users' files keep their modes."""

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

from sessionmgr.process.private_modes import (
    make_private_directory,
    make_private_file,
    private_opener,
)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_directories_that_are_missing_are_made_for_us_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    make_private_directory(tmp_path / "a" / "b")
    assert [mode(tmp_path), mode(tmp_path / "a"), mode(tmp_path / "a" / "b")] == [
        0o755,
        0o700,
        0o700,
    ]
    make_private_directory(tmp_path / "a" / "b")


def test_a_file_in_the_place_of_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    with pytest.raises(FileExistsError):
        make_private_directory(tmp_path / "a")


def test_a_file_that_everybody_may_read_is_closed_when_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("kept")
    path.chmod(0o644)
    make_private_file(path)
    assert (mode(path), path.read_text()) == (0o600, "kept")


def test_a_file_that_was_opened_to_a_group_stays_so(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    path.chmod(0o660)
    make_private_file(path)
    assert mode(path) == 0o660


def test_a_file_that_a_link_names_is_created_where_it_points(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    make_private_file(tmp_path / "link")
    assert mode(tmp_path / "file") == 0o600
    assert (tmp_path / "link").is_symlink()


def test_a_file_in_no_directory_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        make_private_file(tmp_path / "none" / "file")


LOCK_IT = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"


def test_a_file_keeps_the_locks_that_this_process_has_on_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    make_private_file(path)
    path.chmod(0o644)
    with path.open("r+") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        make_private_file(path)
        command = [sys.executable, "-S", "-c", LOCK_IT, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "BlockingIOError" in done.stderr
    assert mode(path) == 0o600


def test_a_file_that_is_written_anew_is_closed_before_anything_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    path.chmod(0o644)
    with open(path, "wb", opener=private_opener):
        assert mode(path) == 0o600


def test_what_is_no_file_is_left_as_it_is() -> None:
    before = mode(Path("/dev/null"))
    with open("/dev/null", "wb", opener=private_opener):
        assert mode(Path("/dev/null")) == before
