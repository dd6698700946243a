"""A path is judged by the file to which it leads, and not by its spelling."""

from __future__ import annotations

from pathlib import Path

import pytest

from sessionmgr.adapter.kit.paths import resolve_within


def test_a_path_is_seen_from_the_directory_that_it_leads_into(tmp_path: Path) -> None:
    work, real, outside = (tmp_path / name for name in ("work", "real", "outside"))
    for each in (real, outside):
        each.mkdir()
    work.symlink_to(real)
    (real / "link").symlink_to(outside)
    assert resolve_within([str(work)], str(real / "a")) == str(work / "a")
    assert resolve_within([str(work)], str(work / "x" / ".." / "a")) == str(work / "a")
    assert resolve_within([str(work)], str(work / "link" / "a")) == str(outside / "a")
    assert resolve_within([], str(work / "a")) == str(real / "a")


def test_a_relative_path_is_resolved_against_the_runs_directory_and_not_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, outside, ours = (tmp_path / name for name in ("work", "outside", "work/sub"))
    for each in (work, outside, ours):
        each.mkdir()
    (work / "link").symlink_to(outside)
    monkeypatch.chdir(ours)
    directories = [str(work), str(outside / "more")]
    assert resolve_within(directories, "src") == str(work / "src")
    assert resolve_within(directories, "../x") == str(tmp_path / "x")
    assert resolve_within(directories, "link/x") == str(outside / "x")
    assert resolve_within(directories, "link/more/x") == str(outside / "more" / "x")


@pytest.mark.parametrize("path", ["~/.bashrc", "~root/x", "a\0b", "/a\0b"])
def test_a_path_that_only_its_reader_can_resolve_stays_as_it_is(tmp_path: Path, path: str) -> None:
    assert resolve_within([str(tmp_path)], path) == path
    assert resolve_within([], "relative") == "relative"
