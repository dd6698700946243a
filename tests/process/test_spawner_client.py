"""A spawner starts, although the terminal's Ctrl-C may kill it during its start."""

import shlex
import sys
from pathlib import Path

import pytest

from sessionmgr.process import Command, LauncherFailed, open_launcher, open_tree


def interpreter(place: Path, kills: int, number: str) -> str:
    """Make an interpreter that a signal kills at its first few starts."""
    path = place / "python"
    path.write_text(
        "#!/bin/sh\n"
        f"for n in $(seq {kills}); do\n"
        f'  if mkdir "{place}/killed-$n" 2>/dev/null; then kill -{number} $$; sleep 9; fi\n'
        "done\n"
        f'exec {shlex.quote(sys.executable)} "$@"\n'
    )
    path.chmod(0o755)
    return str(path)


def killed(place: Path) -> int:
    return len(list(place.glob("killed-*")))


@pytest.mark.parametrize("number", ["INT", "TERM", "HUP", "QUIT"])
async def test_one_that_is_struck_is_followed_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: str
) -> None:
    monkeypatch.setattr(sys, "executable", interpreter(tmp_path, 2, number))
    command = Command(argv=("/bin/sh", "-c", "echo well"), cwd="/", env={"PATH": "/usr/bin:/bin"})
    async with (
        open_launcher(state_dir=tmp_path / "state") as launcher,
        open_tree(launcher, command) as tree,
    ):
        assert await tree.stdout.receive_some() == b"well\n"
    assert killed(tmp_path) == 2


async def test_it_is_not_tried_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", interpreter(tmp_path, 100, "INT"))
    with pytest.raises(LauncherFailed, match="signals killed it 5 times"):
        async with open_launcher(state_dir=tmp_path / "state"):
            pytest.fail("it is open")


async def test_what_fails_for_another_reason_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", interpreter(tmp_path, 100, "ABRT"))
    with pytest.raises(LauncherFailed, match="did not start"):
        async with open_launcher(state_dir=tmp_path / "state"):
            pytest.fail("it is open")
    assert killed(tmp_path) == 1
