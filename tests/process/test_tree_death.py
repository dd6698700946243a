"""Trees end when owner, spawner or reapers are killed, in any combination (I10 and I11)."""

import os
import shutil
import signal
from pathlib import Path

import pytest
import trio

from sessionmgr.process.procfs import owner_uid, read_stat
from sessionmgr.process.tree_tag import launcher_number, process_tags
from tests.process.owner_processes import (
    PATIENCE,
    USERS,
    is_alive,
    kill,
    open_to_all_users,
    owner,
    owner_helpers,
    tagged_processes,
    until,
)

FAMILY = "plain,own_session,own_group,daemon,bare_environment,deep,namespaced,deaf"
NOTES = 18
"""How many processes of a family note themselves."""
ENDLESS = ("forking", "forking_sessions", "brood")


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("killed", ["owner", "owner+spawner", "owner+reapers"])
async def test_everything_ends_with_the_owner_including_spawner_and_reapers(
    tmp_path: Path, user: str, killed: str
) -> None:
    async with owner(tmp_path, user, FAMILY, *ENDLESS) as run:
        await run.until_noted(NOTES)
        who = {"owner": [run.pid], "spawner": [run.spawner], "reapers": run.reapers}
        kill(*(pid for each in killed.split("+") for pid in who[each]))
        await run.until_nothing()


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("killed", ["reapers", "spawner+reapers"])
async def test_without_reapers_trees_end_and_the_owner_knows_it(
    tmp_path: Path, user: str, killed: str
) -> None:
    async with owner(tmp_path, user, FAMILY, *ENDLESS) as run:
        await run.until_noted(NOTES)
        kill(*run.reapers, *([run.spawner] if "spawner" in killed else []))
        await run.until_empty()
        await run.send("reports")
        report = await run.read_report()
        assert [each["emptied"] for each in report["reports"]] == ["swept"] * 4
        assert {each["ending"] for each in report["reports"]} == {"lost"}
        assert is_alive(run.pid)
        await run.send("spawn")  # the owner continues to work
        await run.read_report()


@pytest.mark.parametrize("user", USERS)
async def test_no_run_dies_of_its_spawner_which_is_replaced(tmp_path: Path, user: str) -> None:
    async with owner(tmp_path, user, FAMILY, "plain") as run:
        await run.until_noted(NOTES + 1)
        before = tagged_processes(run.launcher)
        kill(run.spawner)
        await run.send("spawn")
        report = await run.read_report()
        assert report["over"] == [False, False, False]
        await run.send("successor")
        await run.read_report()
        assert set(before) <= set(tagged_processes(run.launcher))
        # The new one was never an ancestor of the old trees, and kills them all the same.
        kill(run.pid, *run.reapers)
        await run.until_nothing()


@pytest.mark.parametrize("user", USERS)
async def test_after_the_death_of_all_three_the_next_launcher_sweeps_and_reports_it(
    tmp_path: Path, user: str
) -> None:
    state = tmp_path / "state"
    open_to_all_users(state)
    async with owner(tmp_path / "1", user, FAMILY, *ENDLESS, state=state) as run:
        await run.until_noted(NOTES)
        # Stop all of them first: the last one alive could replace a spawner or end a tree.
        for each in (run.pid, run.spawner, *run.reapers):
            os.kill(each, signal.SIGSTOP)
        kill(run.spawner, *run.reapers, run.pid)
        await until(lambda: not owner_helpers(run.launcher))
        assert len(tagged_processes(run.launcher)) >= NOTES
        async with owner(tmp_path / "2", user, "plain", state=state) as second:
            assert second.boot["dead"] == [f"{run.launcher:010x}"]
            killed = {each["pid"] for each in second.boot["killed"]}
            # Some die because another process did.
            assert len({pid for pid, _ in run.noted()} & killed) > NOTES // 2
            assert second.boot["left_running"] == []
            await run.until_nothing()
            await second.send("leave")
            await second.until_nothing()
        assert list(state.iterdir()) == []


@pytest.mark.parametrize("user", USERS)
async def test_an_owner_that_was_stopped_and_continues_keeps_its_trees(
    tmp_path: Path, user: str
) -> None:
    async with owner(tmp_path, user, FAMILY) as run:
        await run.until_noted(NOTES)
        before = tagged_processes(run.launcher)
        os.kill(run.pid, signal.SIGSTOP)
        await trio.sleep(float(os.environ.get("SESSIONMGR_TEST_STOPPED", "2")))
        assert set(before) <= set(tagged_processes(run.launcher))  # others may have started
        os.kill(run.pid, signal.SIGCONT)
        await run.send("spawn")
        assert (await run.read_report())["over"] == [False, False]
        os.kill(run.pid, signal.SIGSTOP)
        kill(run.pid)
        await run.until_nothing()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_an_owner_that_a_signal_ends_leaves_nothing(
    tmp_path: Path, number: signal.Signals
) -> None:
    async with owner(tmp_path, USERS[-1], FAMILY, *ENDLESS) as run:
        await run.until_noted(NOTES)
        os.kill(run.pid, number)
        await run.until_nothing()


@pytest.mark.parametrize("user", USERS)
async def test_a_kill_proves_that_each_tree_is_empty(tmp_path: Path, user: str) -> None:
    async with owner(tmp_path, user, FAMILY, *ENDLESS) as run:
        await run.until_noted(NOTES)
        await run.send("kill")
        await run.until_empty()
        await run.send("reports")
        report = await run.read_report()
        assert [each["emptied"] for each in report["reports"]] == ["no_child"] * 4


async def test_a_forked_copy_of_the_owner_keeps_nothing_alive(tmp_path: Path) -> None:
    async with owner(tmp_path, USERS[-1], FAMILY) as run:
        await run.until_noted(NOTES)
        await run.send("fork")
        copy = (await run.read_report())["copy"]
        kill(run.pid)
        await run.until_empty()
        assert is_alive(copy)
        await until(lambda: not owner_helpers(run.launcher))
        async with owner(tmp_path / "2", USERS[-1], state=tmp_path / "state") as second:
            assert second.boot["dead"] == [f"{run.launcher:010x}"]


@pytest.mark.parametrize("after", [0.0, 0.003, 0.01, 0.03, 0.1])
@pytest.mark.parametrize("too", ["", "spawner"])
async def test_an_owner_that_dies_while_it_starts_children_leaves_nothing(
    tmp_path: Path, after: float, too: str
) -> None:
    async with owner(tmp_path, USERS[-1], "plain") as run:
        await run.send("storm")
        await run.until_noted(2)
        await trio.sleep(after)
        kill(run.pid, *([run.spawner] if too else []))
        await run.until_nothing()


@pytest.mark.parametrize("user", USERS)
async def test_spawners_may_die_while_children_are_started(tmp_path: Path, user: str) -> None:
    async with owner(tmp_path, user, "plain") as run:
        for _ in range(3):
            await run.send("storm")
            kill(run.spawner)
            await run.send("spawn")
            report = await run.read_report()
            assert not any(report["over"])
            await run.send("spawner")
            run.spawner = (await run.read_report())["spawner"]
        kill(run.pid)
        await run.until_nothing()


@pytest.mark.parametrize("killed", ["owner", "owner+spawner+reapers"])
async def test_an_owner_inside_a_tree_dies_with_all_of_its_own(tmp_path: Path, killed: str) -> None:
    async with owner(tmp_path, USERS[-1], "nested") as run:
        await run.until_noted(5)
        inner = [each for pid, _ in run.noted() for each in process_tags(pid)]
        assert {launcher_number(each) for each in inner} > {run.launcher}
        assert tagged_processes(run.launcher), "the outer tag is in the environment, at least"
        if killed == "owner":
            kill(run.pid)
        else:
            # Stop all of them first: those inside must not end their trees before they are killed.
            for launcher in {run.launcher, *map(launcher_number, inner)}:
                for pid in owner_helpers(launcher):
                    os.kill(pid, signal.SIGSTOP)
            kill(run.pid, run.spawner, *run.reapers)
            async with owner(tmp_path / "2", USERS[-1], state=tmp_path / "state"):
                await run.until_nothing()
        await run.until_nothing()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a program that becomes another")
async def test_a_process_of_another_user_is_reported_and_not_waited_for(tmp_path: Path) -> None:
    setpriv = shutil.which("setpriv")
    assert setpriv is not None
    shutil.copy(setpriv, tmp_path / "become")
    (tmp_path / "become").chmod(0o4755)
    async with owner(tmp_path, "nobody", "another_user,plain") as run:
        await run.until_noted(1)
        # Before it executes sleep it has only the rights of root, and may still be killed.
        await until(lambda: any(_is_sleep_of_root(pid) for pid in run.left()))
        await run.send("kill")
        await run.send("reports")
        with trio.fail_after(PATIENCE):
            (ended,) = (await run.read_report())["reports"]
        (other,) = ended["left_running"]
        assert (other["name"], other["uid"]) == ("sleep", 0)
        assert is_alive(other["pid"])
        assert ended["emptied"] == "unproved"
        await run.send("leave")
        await until(lambda: not is_alive(run.pid))


def _is_sleep_of_root(pid: int) -> bool:
    found = read_stat(pid)
    return found is not None and found.name == "sleep" and owner_uid(pid) == 0
