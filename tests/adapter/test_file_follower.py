"""Follower of a file that another program writes."""

from pathlib import Path

from sessionmgr.adapter.kit.file_follower import GrowingFile


async def test_a_file_that_is_deleted_as_it_is_about_to_be_read_has_no_news(tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(b"one\n")
    names = iter(["not yet", "there", "gone", "there", "there"])
    file = GrowingFile(lambda: tmp_path / next(names), lambda lines: lines)
    assert await file.read_new() == []
    assert await file.read_new() == [b"one"]
