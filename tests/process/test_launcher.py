"""Launchers: which programs they start, how these end and what is known of the end.

Most tests run with a spawner and without.
"""

import contextlib
import os
import resource
import signal
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import trio
import trio.testing

from sessionmgr.process import (
    DescriptorsExhausted,
    LauncherFailed,
    NoSuchDirectory,
    NotExecutable,
    ProgramNotFound,
    SpawnFailed,
    process_group,
    procfs,
    resource_shortage,
)
from sessionmgr.process.command import Command
from sessionmgr.process.escalation import Escalation, open_tree
from sessionmgr.process.exit_report import EmptyProof, ExitKind, ProgramExit
from sessionmgr.process.launcher import ChildTree, Launcher
from sessionmgr.process.launcher_factory import (
    LauncherKind,
    _raise_limit_once as raised,  # pyright: ignore[reportPrivateUsage]
    open_launcher,
)
from sessionmgr.process.linux import launcher as linux_launcher
from sessionmgr.process.linux.launcher import MAX_STARTS, SpawnerLauncher
from sessionmgr.process.linux.packet import pack
from sessionmgr.process.linux.tree import ReaperTree
from sessionmgr.process.tree_tag import VARIABLE, parse_tags, tag_from_limit
from tests.process.owner_processes import is_alive, until

HASTY = Escalation(polite=0.2, term=0.2, linger=0.2, kill=60.0)
PATIENT = Escalation(term=60.0)
EMPTY = {LauncherKind.SPAWNER: EmptyProof.NO_CHILD, LauncherKind.DIRECT: EmptyProof.GROUP_GONE}
BOTH = pytest.mark.parametrize("kind", EMPTY, ids=lambda kind: kind.value)


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give killed processes time to end, on a busy machine."""
    for module in (process_group, linux_launcher):
        monkeypatch.setattr(module, "KILL_WITHIN", 60.0)


def command(
    *argv: str, cwd: str = "/", stdin: bool = True, env: dict[str, str] | None = None
) -> Command:
    env = {"PATH": os.environ["PATH"], **(env or {})}
    return Command(argv=argv, cwd=cwd, env=env, stdin=stdin)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def shell(text: str) -> Command:
    return command("sh", "-c", text)


@contextlib.asynccontextmanager
async def launching(place: Path, kind: LauncherKind) -> AsyncGenerator[Launcher, None]:
    with trio.fail_after(120):
        async with open_launcher(state_dir=place / "state", kind=kind) as launcher:
            yield launcher


async def read_all(stream: trio.abc.ReceiveStream) -> bytes:
    return b"".join([piece async for piece in stream])


async def said(launcher: Launcher, what: Command) -> bytes:
    async with open_tree(launcher, what) as tree:
        text = await read_all(tree.stdout)
        await tree.wait_empty()
        return text


@BOTH
async def test_a_child_reads_writes_complains_and_exits(tmp_path: Path, kind: LauncherKind) -> None:
    async with launching(tmp_path, kind) as launcher:
        async with open_tree(launcher, shell("cat; echo no >&2; exit 3")) as tree:
            assert tree.stdin is not None
            await tree.stdin.send_all(b"yes")
            await tree.stdin.aclose()
            assert await read_all(tree.stdout) == b"yes"
            assert await read_all(tree.stderr) == b"no\n"
            assert await tree.wait_exit() == ProgramExit(exit_code=3)
            report = await tree.wait_empty()
        assert report == await tree.wait_empty(), "and it is known after the block, too"
        assert (report.exit_code, report.signal) == (3, None)
        assert report.ending is ExitKind.EXITED
        assert report.emptied is EMPTY[kind]
        assert not report.forced
        assert not report.killed_by_os
        assert report.left_running == ()


@BOTH
async def test_a_child_has_its_command_and_nothing_of_ours(
    tmp_path: Path, kind: LauncherKind
) -> None:
    program = (
        "import os, signal, sys; print(sorted(os.listdir('/proc/self/fd'))[:4], os.getcwd(),"
        "os.getsid(0) == os.getpid(), signal.getsignal(signal.SIGTERM) == signal.SIG_DFL,"
        "signal.pthread_sigmask(signal.SIG_BLOCK, []), sys.argv[1:], sys.stdin.read())"
    )
    what = command(
        *(sys.executable, "-S", "-c", program, "", "ä b", "\udcff"),
        cwd=str(tmp_path),
        stdin=False,
        env={"LC_ALL": "C.UTF-8"},
    )
    async with launching(tmp_path, kind) as launcher:
        text = await said(launcher, what)
        # 3 is the directory that it lists.
        expected = f"['0', '1', '2', '3'] {tmp_path} True True set() ['', 'ä b', '\\udcff'] \n"
        assert text.decode() == expected
        names = (await said(launcher, command("env", env={"A": "1\n2"}))).decode()
        assert "A=1\n2\n" in names
        assert {each.split("=")[0] for each in names.splitlines()} <= {
            *("A", "2", "PATH", VARIABLE, "PWD", "SHLVL", "_")
        }


async def test_an_environment_of_two_megabytes_arrives(tmp_path: Path) -> None:
    many = {f"V{number}": "x" * 100_000 for number in range(20)}
    async with launching(tmp_path, LauncherKind.SPAWNER) as launcher:
        what = command("sh", "-c", "env | wc -c", env=many)
        assert int(await said(launcher, what)) > 2_000_000


@BOTH
@pytest.mark.parametrize(
    ("argv", "cwd", "error", "path"),
    [
        (("no-such-program",), "/", ProgramNotFound, "no-such-program"),
        (("/no/such/program",), "/", ProgramNotFound, "/no/such/program"),
        (("here/plain",), "", NotExecutable, "here/plain"),
        (("here",), "", ProgramNotFound, "here"),
        (("./here",), "", NotExecutable, "./here"),
        (("here/script",), "", ProgramNotFound, "here/script"),
        (("here/garbage",), "", NotExecutable, "here/garbage"),
        (("sh",), "/no/such/directory", NoSuchDirectory, "/no/such/directory"),
        (("sh", "x" * 200_000), "/", SpawnFailed, "sh"),
    ],
)
async def test_what_cannot_be_started_is_named(
    tmp_path: Path, kind: LauncherKind, argv: tuple[str, ...], cwd: str, error: type, path: str
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / "plain").write_text("")
    for name, text in (("script", "#!/no/interpreter\n"), ("garbage", "\0\1\2")):
        (here / name).write_text(text)
        (here / name).chmod(0o755)
    async with launching(tmp_path, kind) as launcher:
        with pytest.raises(SpawnFailed) as failed:
            await launcher.spawn(command(*argv, cwd=cwd or str(tmp_path)))
        assert type(failed.value) is error
        assert failed.value.path.endswith(path)
        assert failed.value.path in str(failed.value)
        assert await said(launcher, shell("echo on")) == b"on\n"


@BOTH
@pytest.mark.parametrize(
    ("script", "ending", "code", "sent"),
    [
        ("sleep 1000 & echo; exit 4", ExitKind.LEFT_DESCENDANTS, 4, None),
        (
            "trap '' TERM; exec >&-; echo >&2; sleep 1000; sleep 1000",
            ExitKind.CLOSED_STDOUT,
            None,
            9,
        ),
        ("trap '' TERM; echo; sleep 1000; sleep 1000", ExitKind.STILL_RUNNING, None, 9),
        ("echo; exec sleep 1000", ExitKind.STILL_RUNNING, None, 15),
    ],
    ids=["grandchild holds the pipe", "closes stdout", "deaf", "runs"],
)
async def test_whatever_lives_on_is_ended_and_named(
    tmp_path: Path,
    kind: LauncherKind,
    script: str,
    ending: ExitKind,
    code: int | None,
    sent: int | None,
) -> None:
    async with launching(tmp_path, kind) as launcher:
        # A program that ends at SIGTERM gets all the time that it needs.
        escalation = PATIENT if sent == signal.SIGTERM else HASTY
        async with open_tree(launcher, shell(script), escalation=escalation) as tree:
            await (tree.stderr if ">&2" in script else tree.stdout).receive_some()
            if code is not None:
                await tree.wait_exit()
        report = await tree.wait_empty()
        assert report.ending is ending
        assert (report.exit_code, report.signal) == (code, sent)
        assert report.forced
        assert not report.killed_by_os
        assert report.emptied is EMPTY[kind]


@BOTH
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_a_deadly_signal_that_we_did_not_send_was_the_system(
    tmp_path: Path, kind: LauncherKind, number: signal.Signals
) -> None:
    async with launching(tmp_path, kind) as launcher:
        async with open_tree(launcher, shell("exec sleep 1000")) as tree:
            os.kill(tree.pid, number)
            await tree.wait_exit()
        report = await tree.wait_empty()
        assert report.killed_by_os
        assert report.signal == number
        assert not report.forced


@BOTH
async def test_a_signal_reaches_the_program_alone(tmp_path: Path, kind: LauncherKind) -> None:
    async with launching(tmp_path, kind) as launcher:
        what = shell("trap 'echo got it; exit 5' INT; echo; while :; do sleep 0.01; done")
        async with open_tree(launcher, what) as tree:
            await tree.stdout.receive_some()
            tree.signal(signal.SIGINT)
            assert await read_all(tree.stdout) == b"got it\n"
            assert (await tree.wait_empty()).exit_code == 5
            assert not (await tree.wait_empty()).forced


@BOTH
async def test_many_are_started_at_once_and_several_wait_for_each(
    tmp_path: Path, kind: LauncherKind
) -> None:
    ended: list[int | None] = []

    async def wait(tree: ChildTree) -> None:
        ended.append((await tree.wait_empty()).exit_code)

    async def one(launcher: Launcher, number: int) -> None:
        async with (
            open_tree(launcher, shell(f"read x; exit {number}")) as tree,
            trio.open_nursery() as nursery,
        ):
            for _ in range(3):
                nursery.start_soon(wait, tree)
            with trio.move_on_after(0.001):
                await tree.wait_empty()  # a task that stops waiting does not disturb the others
            assert tree.stdin is not None
            await tree.stdin.aclose()

    async with launching(tmp_path, kind) as launcher, trio.open_nursery() as nursery:
        for number in range(MAX_STARTS + 8):
            nursery.start_soon(one, launcher, number)
    assert sorted(map(str, ended)) == sorted(
        str(n) for n in range(MAX_STARTS + 8) for _ in range(3)
    )


@BOTH
async def test_a_start_that_is_cancelled_leaves_nothing(tmp_path: Path, kind: LauncherKind) -> None:
    notes = tmp_path / "notes"
    async with launching(tmp_path, kind) as launcher:
        for step in range(30):
            with trio.move_on_after(step * 0.0002):
                await launcher.spawn(shell(f"cat /proc/$$/stat >>{notes}; exec sleep 1000"))
        # Programs that were started before the cancel end with the launcher.
    for stat in notes.read_text().splitlines() if notes.exists() else []:
        # Its number may be another process's by now; the start time is not.
        assert not is_alive(int(stat.split()[0]), int(stat.rpartition(")")[2].split()[19]))


@BOTH
async def test_what_the_block_leaves_ends_with_it_and_the_error_is_bare(
    tmp_path: Path, kind: LauncherKind
) -> None:
    seen: list[tuple[Launcher, ChildTree]] = []

    async def break_off() -> None:
        async with launching(tmp_path, kind) as launcher:
            seen.append((launcher, await launcher.spawn(shell("trap '' TERM; sleep 1000"))))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await break_off()
    ((launcher, tree),) = seen
    assert (await tree.wait_empty()).emptied is EMPTY[kind]
    assert os.listdir(tmp_path / "state") == []  # noqa: PTH208
    with pytest.raises(LauncherFailed):
        await launcher.spawn(shell("exit"))


@BOTH
async def test_a_cancelled_block_ends_its_trees_and_is_cancelled_alone(
    tmp_path: Path, kind: LauncherKind
) -> None:
    deaf = shell("trap '' TERM; echo; sleep 1000")
    trees: list[ChildTree] = []
    with trio.CancelScope() as scope:
        async with (
            launching(tmp_path, kind) as launcher,
            open_tree(launcher, deaf, escalation=HASTY) as tree,
        ):
            trees.append(tree)
            await tree.stdout.receive_some()
            scope.cancel()
            await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    assert (await trees[0].wait_empty()).emptied is EMPTY[kind]


@BOTH
async def test_a_tree_that_is_given_up_is_killed(tmp_path: Path, kind: LauncherKind) -> None:
    async with launching(tmp_path, kind) as launcher:
        tree = await launcher.spawn(shell("exec sleep 1000"))
        started = procfs.start_time(tree.pid)
        await tree.aclose()
        await until(lambda: not is_alive(tree.pid, started))


async def test_a_stopped_reaper_is_killed_and_its_tree_with_it(
    tmp_path: Path,
) -> None:
    async with launching(tmp_path, LauncherKind.SPAWNER) as launcher:
        what = shell("setsid sleep 1000 & echo; sleep 1000")
        async with open_tree(launcher, what, escalation=Escalation(term=0.2, kill=0.2)) as tree:
            assert isinstance(tree, ReaperTree)
            await tree.stdout.receive_some()
            os.kill(tree.reaper[0], signal.SIGSTOP)
        report = await tree.wait_empty()
        assert report.emptied is EmptyProof.SWEPT
        assert report.forced


async def test_a_child_costs_its_owner_four_descriptors_and_gives_them_back(
    tmp_path: Path,
) -> None:
    async with launching(tmp_path, LauncherKind.SPAWNER) as launcher:
        first = [await launcher.spawn(shell("read x")) for _ in range(2)]
        await trio.testing.wait_all_tasks_blocked()  # a reaper for the next one exists, too
        before = open_files()
        trees = [await launcher.spawn(shell("read x")) for _ in range(10)]
        await trio.testing.wait_all_tasks_blocked()
        assert open_files() - before == 40
        for tree in trees:
            tree.kill()
            await tree.wait_empty()
            await tree.aclose()
        assert open_files() == before
        for tree in first:
            await tree.aclose()


async def test_a_reaper_whose_tree_is_empty_gets_the_next_one(tmp_path: Path) -> None:
    async with launching(tmp_path, LauncherKind.SPAWNER) as launcher:
        reapers: list[tuple[int, int]] = []
        tags: list[str] = []
        for each in range(6):
            async with open_tree(launcher, shell(f"read x; exit {each}")) as tree:
                assert isinstance(tree, ReaperTree)
                reapers.append(tree.reaper)
                tags.append(tree.id)
                assert tag_from_limit(tree.pid) == [tree.tag]
                assert tree.stdin is not None
                await tree.stdin.aclose()
                report = await tree.wait_empty()
            assert (report.exit_code, report.emptied) == (each, EmptyProof.NO_CHILD)
            assert not report.forced
            await trio.testing.wait_all_tasks_blocked()
        # One was ready for the first; the next was requested then, and may come at any time.
        assert len(set(reapers)) <= 2
        assert len(set(tags)) == 6


async def test_a_signal_that_comes_too_late_does_not_hit_the_next_program(tmp_path: Path) -> None:
    async with launching(tmp_path, LauncherKind.SPAWNER) as launcher:
        assert isinstance(launcher, SpawnerLauncher)
        await said(launcher, shell("exit"))
        for spare in launcher._spares:  # pyright: ignore[reportPrivateUsage]
            assert spare._line is not None  # pyright: ignore[reportPrivateUsage]
            spare._line.send(pack(b"15"))  # pyright: ignore[reportPrivateUsage]
        assert await said(launcher, shell("sleep 0.05; echo on")) == b"on\n"


async def test_a_reaper_that_had_to_kill_gets_no_other_tree(tmp_path: Path) -> None:
    async with launching(tmp_path, LauncherKind.SPAWNER) as launcher:
        async with open_tree(launcher, shell("setsid sleep 1000 &")) as tree:
            assert isinstance(tree, ReaperTree)
            await tree.wait_exit()
        report = await tree.wait_empty()
        assert report.emptied is EmptyProof.NO_CHILD
        assert report.forced
        await until(lambda: not is_alive(*tree.reaper))


async def test_an_idle_reaper_that_was_killed_is_not_used(tmp_path: Path) -> None:
    async with launching(tmp_path, LauncherKind.SPAWNER) as launcher:
        async with open_tree(launcher, shell("exit")) as tree:
            assert isinstance(tree, ReaperTree)
            await tree.wait_empty()
        os.kill(tree.reaper[0], signal.SIGKILL)
        await until(lambda: not is_alive(*tree.reaper))
        assert await said(launcher, shell("echo on")) == b"on\n"


async def test_idle_reapers_go_with_their_spawner(tmp_path: Path) -> None:
    async with launching(tmp_path, LauncherKind.SPAWNER) as launcher:
        assert isinstance(launcher, SpawnerLauncher)
        async with open_tree(launcher, shell("exit")) as tree:
            assert isinstance(tree, ReaperTree)
            await tree.wait_empty()
        os.kill(launcher.spawner_pid, signal.SIGKILL)
        await until(lambda: not is_alive(*tree.reaper))
        assert await said(launcher, shell("echo on")) == b"on\n"


async def test_a_start_that_would_exhaust_the_descriptors_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource_shortage, "RETRY_FOR", 1.0)
    async with launching(tmp_path, LauncherKind.SPAWNER) as launcher:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        tree = await launcher.spawn(shell("read x; exit 6"))
        resource.setrlimit(resource.RLIMIT_NOFILE, (open_files() + 8, hard))
        try:
            with pytest.raises(DescriptorsExhausted):
                await launcher.spawn(shell("read x"))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert tree.stdin is not None
        await tree.stdin.aclose()
        assert (await tree.wait_empty()).exit_code == 6


async def test_marks_say_whose_a_process_is(tmp_path: Path) -> None:
    async with launching(tmp_path, LauncherKind.SPAWNER) as launcher:
        assert isinstance(launcher, SpawnerLauncher)
        tree = await launcher.spawn(shell(f"echo ${VARIABLE}; grep locks /proc/self/limits"))
        environment, _, _, _, limit, *_ = (await read_all(tree.stdout)).decode().split()
        assert parse_tags(environment)[-1] == int(limit) == int(tree.id, 16)
        await tree.wait_empty()
        await tree.aclose()


async def kill_spawners(launcher: SpawnerLauncher) -> None:
    while True:
        if launcher.spawner_pid:
            os.kill(launcher.spawner_pid, signal.SIGKILL)
        other = await launcher.spawn(shell("exit"))
        await other.wait_empty()
        await other.aclose()


async def test_children_get_the_limit_of_open_files_that_we_had(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with launching(tmp_path, LauncherKind.SPAWNER) as launcher:
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= soft
        assert int(await said(launcher, shell("ulimit -n"))) == raised().before
    assert hard == resource.getrlimit(resource.RLIMIT_NOFILE)[1]


async def test_a_spawner_that_does_not_end_is_killed_and_reaped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linux_launcher, "KILL_WITHIN", 0.1)
    before = set(procfs.children(os.getpid()))
    async with launching(tmp_path, LauncherKind.SPAWNER) as launcher:
        assert isinstance(launcher, SpawnerLauncher)
        os.kill(launcher.spawner_pid, signal.SIGSTOP)
    assert set(procfs.children(os.getpid())) <= before


async def test_a_start_outlives_several_spawners(tmp_path: Path) -> None:
    async def start(launcher: Launcher) -> None:
        assert await said(launcher, shell("echo on")) == b"on\n"

    async with (
        launching(tmp_path, LauncherKind.SPAWNER) as launcher,
        trio.open_nursery() as nursery,
    ):
        assert isinstance(launcher, SpawnerLauncher)
        seen = {0}
        for _ in range(3):
            await until(lambda: launcher.spawner_pid not in seen)
            spawner = launcher.spawner_pid
            seen.add(spawner)
            os.kill(spawner, signal.SIGSTOP)  # it does not answer the request
            nursery.start_soon(start, launcher)
            await trio.testing.wait_all_tasks_blocked()
            os.kill(spawner, signal.SIGKILL)


async def test_after_repeated_spawner_deaths_the_launcher_fails_and_its_trees_run_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linux_launcher, "SPAWNER_DEATHS_WITHIN", 600.0)  # however slowly they start
    async with launching(tmp_path, LauncherKind.SPAWNER) as launcher:
        assert isinstance(launcher, SpawnerLauncher)
        tree = await launcher.spawn(shell("read x; exit 7"))
        with pytest.raises(LauncherFailed, match="spawners died"):
            await kill_spawners(launcher)
        assert "The launcher cannot start children any more." in caplog.text
        assert tree.stdin is not None
        await tree.stdin.aclose()
        assert (await tree.wait_empty()).exit_code == 7


ELSEWHERE = """
import os, pathlib, signal, sys, trio
sys.platform = "darwin"
del os.pidfd_open, os.pipe2, signal.pidfd_send_signal
from sessionmgr.process import Command, LauncherKind, open_launcher, open_tree

async def main(place, *kind):
    state = pathlib.Path(place)
    kind = LauncherKind(*kind) if kind else LauncherKind.BEST
    async with open_launcher(state_dir=state, kind=kind) as launcher:
        sleep = Command(argv=("sleep", "1000"), cwd="/", env={})
        async with open_tree(launcher, sleep) as tree:
            pass
        print((await tree.wait_empty()).emptied.value)

trio.run(main, *sys.argv[1:])
"""


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("best", "group_gone"), ("direct", "group_gone"), ("spawner", "has no subreapers")],
)
async def test_without_subreapers_process_groups_own_the_children(
    tmp_path: Path, kind: str, expected: str
) -> None:
    done = await trio.run_process(
        [sys.executable, "-c", ELSEWHERE, str(tmp_path), kind],
        check=False,
        capture_stdout=True,
        capture_stderr=True,
    )
    assert expected in (done.stdout or done.stderr).decode()
