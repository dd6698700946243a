"""A path is judged by where it leads, and not by how it is written."""

from __future__ import annotations

from pathlib import Path

from sessionmgr.provider.place import as_seen_from


def test_a_path_is_seen_from_the_directory_that_it_leads_into(tmp_path: Path) -> None:
    work, real, outside = (tmp_path / name for name in ("work", "real", "outside"))
    for each in (real, outside):
        each.mkdir()
    work.symlink_to(real)
    (real / "link").symlink_to(outside)
    assert as_seen_from([str(work)], str(real / "a")) == str(work / "a")
    assert as_seen_from([str(work)], str(work / "x" / ".." / "a")) == str(work / "a")
    assert as_seen_from([str(work)], str(work / "link" / "a")) == str(outside / "a")
    assert as_seen_from([], str(work / "a")) == str(real / "a")
