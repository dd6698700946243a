"""A launcher that fails to start fails only the runs that need it."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import trio

import sessionmgr
from sessionmgr.manager.lazy_launcher import LazyLauncher
from sessionmgr.model import FailureKind, RunResult, RunStatus
from sessionmgr.process import Command, LauncherFailed, LauncherKind, open_launcher, open_tree
from sessionmgr.testing.scripted_provider import Say, Wait
from tests.manager.harness import ManagerHarness, open_harness

ECHO = Command(argv=("echo", "well"), cwd="/", env={"PATH": "/usr/bin:/bin"})


async def in_a_shell(house: ManagerHarness) -> RunResult:
    session = await house.manager.open_session("shell")
    return await (await session.submit("echo well")).result()


async def test_a_launcher_that_does_not_come_up_fails_the_run_that_wanted_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    async with open_harness() as house:
        neighbour = await house.start(Wait(seconds=1), Say(text="done"))
        with monkeypatch.context() as patched:
            patched.setattr(sys, "executable", "/no/such/python")
            for _ in range(2):
                result = await in_a_shell(house)
                assert result.failure is not None
                assert (result.status, result.failure.kind) == (
                    RunStatus.FAILED,
                    FailureKind.START_FAILED,
                )
                assert "/no/such/python" in result.failure.message
        result = await in_a_shell(house)
        assert (result.status, result.text) == (RunStatus.COMPLETED, "well\n")
        assert (await neighbour.result()).text == "done"


async def test_all_starts_that_wait_for_a_launcher_hear_that_it_does_not_come_up(
    tmp_path: Path,
) -> None:
    place = tmp_path / "file"
    place.write_text("")
    late = LazyLauncher(state_dir=place)
    failures: list[LauncherFailed] = []

    async def start() -> None:
        with pytest.raises(LauncherFailed, match=str(place)) as caught:
            await late.spawn(ECHO)
        failures.append(caught.value)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(late.serve)
        async with trio.open_nursery() as starts:
            for _ in range(3):
                starts.start_soon(start)
        nursery.cancel_scope.cancel()
    assert len(set(failures)) == 3


@pytest.mark.parametrize("home", ["file", "file/below"])
async def test_a_child_is_started_without_a_state_directory_and_that_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, home: str
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / home))
    for _ in range(2):
        async with open_launcher() as launcher, open_tree(launcher, ECHO) as tree:
            assert await tree.stdout.receive_some() == b"well\n"
    assert caplog.text.count(f"event=no_state_directory why={tmp_path / home}") == 1


async def test_process_groups_need_the_state_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(LauncherFailed, match=str(tmp_path)):
        async with open_launcher(kind=LauncherKind.DIRECT):
            pytest.fail("it is open")


async def test_a_user_without_a_home_has_no_state_directory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "~of-a-user-who-is-none/state")
    with pytest.raises(LauncherFailed, match="no state directory"):
        async with open_launcher(kind=LauncherKind.DIRECT):
            pytest.fail("it is open")


FROM_A_ZIP = """
import sys, trio
from pathlib import Path
import sessionmgr
assert ".zip" in sessionmgr.__file__, sessionmgr.__file__
from sessionmgr.process import Command, open_launcher, open_tree
async def main():
    echo = Command(argv=("echo", "well"), cwd="/", env={"PATH": "/usr/bin:/bin"})
    async with open_launcher(state_dir=Path(sys.argv[1])) as launcher:
        async with open_tree(launcher, echo) as tree:
            assert await tree.stdout.receive_some() == b"well\\n"
        facts = await tree.wait_empty()
        print(type(launcher).__name__, facts.emptied.name)
trio.run(main)
"""


def test_children_can_be_started_where_the_package_is_in_a_zip(tmp_path: Path) -> None:
    package = Path(sessionmgr.__file__).parent
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for path in package.rglob("*.py"):
            archive.write(path, path.relative_to(package.parent))
    done = subprocess.run(
        [sys.executable, "-c", FROM_A_ZIP, str(tmp_path / "state")],
        env={"PYTHONPATH": str(tmp_path / "all.zip"), "PATH": "/usr/bin:/bin"},
        cwd=tmp_path,
        capture_output=True,
        check=False,
        text=True,
    )
    assert (done.stdout, done.returncode) == ("SpawnerLauncher NO_CHILD\n", 0), done.stderr
