from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from sessionmgr.process.private_files import (
    LARGEST_ARGUMENT,
    PrivateFiles,
    TextChannel,
    choose_channel,
)


def test_a_short_and_harmless_text_is_an_argument() -> None:
    for stdin in (True, False):
        assert choose_channel("fix the test", stdin=stdin) is TextChannel.ARGUMENT
        assert choose_channel("x" * LARGEST_ARGUMENT, stdin=stdin) is TextChannel.ARGUMENT


@pytest.mark.parametrize(
    "text", ["x" * (LARGEST_ARGUMENT + 1), "€" * (LARGEST_ARGUMENT // 2), "-p", "--help me", "a\0b"]
)
def test_a_text_that_is_long_or_could_be_misread_is_none(text: str) -> None:
    assert choose_channel(text, stdin=True) is TextChannel.STDIN
    assert choose_channel(text, stdin=False) is TextChannel.FILE


def test_a_private_file_is_for_us_alone_and_gone_at_the_end(tmp_path: Path) -> None:
    old = os.umask(0)  # the least protection a user can have
    try:
        with PrivateFiles(tmp_path) as files:
            path = files.write("prompt.txt", "größer\n" * 10_000)
            assert path.is_absolute()
            assert path.read_text("utf-8") == "größer\n" * 10_000
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
            assert path.parent.parent == tmp_path
    finally:
        os.umask(old)
    assert list(tmp_path.iterdir()) == []


def test_private_files_are_gone_after_an_error_and_when_the_child_has_added_to_them(
    tmp_path: Path,
) -> None:
    def fail_inside() -> None:
        with PrivateFiles(tmp_path) as files:
            (files.write("a", "a").parent / "left").mkdir()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_inside()
    assert list(tmp_path.iterdir()) == []


def test_half_a_surrogate_pair_in_a_text_ends_nothing(tmp_path: Path) -> None:
    assert choose_channel("\ud800", stdin=True) is TextChannel.ARGUMENT
    with PrivateFiles(tmp_path) as files:
        assert files.write("a", "x\ud800").read_bytes() == b"x?"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../a", "/etc/passwd"])
def test_a_private_file_stays_in_its_directory(name: str, tmp_path: Path) -> None:
    with PrivateFiles(tmp_path) as files, pytest.raises(ValueError, match="not a plain file name"):
        files.write(name, "x")


def test_a_private_file_is_never_one_that_is_there_already(tmp_path: Path) -> None:
    with PrivateFiles(tmp_path) as files:
        files.write("a", "first")
        with pytest.raises(FileExistsError):
            files.write("a", "second")


def test_private_files_outside_their_block_are_a_mistake() -> None:
    with pytest.raises(RuntimeError, match="inside the block"):
        PrivateFiles().write("a", "x")
