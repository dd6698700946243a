"""A path is judged by where it leads, and not by how it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from sessionmgr.adapter.kit.paths import as_seen_from


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


def test_a_relative_path_is_resolved_against_the_runs_directory_and_not_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, outside, ours = (tmp_path / name for name in ("work", "outside", "work/sub"))
    for each in (work, outside, ours):
        each.mkdir()
    (work / "link").symlink_to(outside)
    monkeypatch.chdir(ours)
    directories = [str(work), str(outside / "more")]
    assert as_seen_from(directories, "src") == str(work / "src")
    assert as_seen_from(directories, "../x") == str(tmp_path / "x")
    assert as_seen_from(directories, "link/x") == str(outside / "x")
    assert as_seen_from(directories, "link/more/x") == str(outside / "more" / "x")


@pytest.mark.parametrize("path", ["~/.bashrc", "~root/x", "a\0b", "/a\0b"])
def test_a_path_that_only_its_reader_can_resolve_stays_as_it_is(tmp_path: Path, path: str) -> None:
    assert as_seen_from([str(tmp_path)], path) == path
    assert as_seen_from([], "relative") == "relative"
