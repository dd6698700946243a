from pathlib import Path

import pytest

from sessionmgr.manager.run_planner import absolute_path


def test_a_relative_path_is_seen_from_where_the_process_is_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        assert absolute_path(".") == str(tmp_path / name)
        assert absolute_path(Path("below")) == str(tmp_path / name / "below")


@pytest.mark.parametrize("path", ["/", "/a//b/", "/a/./b", "/a/../b", Path("/a/b")])
def test_an_absolute_path_stays_what_a_path_makes_of_it(path: str | Path) -> None:
    assert absolute_path(path) == str(Path(path).absolute())
