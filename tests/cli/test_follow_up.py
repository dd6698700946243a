"""Follow-ups of finished jobs by the id of the job, its run or its session."""

import json
import os
import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from sessionmgr import Job, Manager, RunResult, open_manager, run_batch
from sessionmgr.batch.batch_dir import BatchDirectory
from sessionmgr.cli.queries import owner_name
from sessionmgr.manager.owner import ManagerOwner
from sessionmgr.model import PermissionMode
from sessionmgr.store.rows import Lease
from sessionmgr.testing.scripted_provider import Fail, Hang, Say, Tool, scripted
from tests.cli.command_terminal import CommandTerminal
from tests.cli.installed_actor import install
from tests.manager.harness import run_scripted

PATIENCE = 120
MORE = run_scripted(Say(text="and so on"))
SCRIPTS = {
    "completed": run_scripted(Say(text="x")),
    "failed": run_scripted(Say(text="x"), Fail()),
    "timed_out": run_scripted(Say(text="x"), Hang()),
}
LAST_EVENTS = {
    "completed": "run_completed",
    "failed": "run_failed",
    "timed_out": "message_received",
}
"""The last event of each script before its deadline passes."""


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch)


def batch(store: Path, out: Path, *jobs: Job, until: str | None = None) -> dict[str, RunResult]:
    """Run jobs in another program, and return their results.

    With `until`, deadlines begin to run when the one job has an event of that type, and not before.
    """
    clock = None if until is None else MockClock()

    async def main() -> dict[str, RunResult]:
        async with (
            open_manager(store=store, adapters={"actor": scripted("actor")}) as manager,
            run_batch(manager, jobs, out=out, retries=0) as results,
        ):
            if clock is not None and until is not None:
                await first(until, manager)
                clock.rate = 1.0
            return {result.job: result async for result in results}

    return trio.run(main, clock=clock)


async def first(event_type: str, manager: Manager) -> None:
    """Wait until the one session has an event of that type."""
    while not (sessions := await manager.sessions()):
        pass
    await anext(manager.subscribe(sessions[0].id, types=[event_type]))


def runs_of(terminal: CommandTerminal, name: str, *more: str) -> list[dict[str, object]]:
    _, out, err = terminal("show", name, "--json", *more)
    assert not err
    runs: list[dict[str, object]] = json.loads(out)["runs"]
    return runs


@pytest.mark.parametrize("by", ["job", "run", "session"])
@pytest.mark.parametrize("how", SCRIPTS)
def test_a_job_that_is_over_is_followed_up_in_its_session(
    terminal: CommandTerminal, tmp_path: Path, how: str, by: str
) -> None:
    job = Job(id="core-11", prompt=SCRIPTS[how], provider="actor", deadline=0.5)
    result = batch(terminal.store, tmp_path / "night", job, until=LAST_EVENTS[how])["core-11"]
    assert result.status == how
    name = {"job": "core-11", "run": result.id, "session": result.session_id}[by]
    code, out, err = terminal("resume", name, MORE, "--deadline", "60")
    assert (code, out) == (0, "and so on"), err
    first, second = runs_of(terminal, "core-11")
    assert (first["status"], second["status"]) == (how, "completed")
    assert second["resumed_from"] == first["id"]
    assert second["provider_session_id"] == first["provider_session_id"]
    code, out, err = terminal("run", "--resume", name, MORE, "--deadline", "60")
    assert (code, out) == (0, "and so on"), err
    assert len(runs_of(terminal, "core-11")) == 3


def test_an_agent_that_was_cut_inside_a_tool_call_is_reported_so(
    terminal: CommandTerminal, tmp_path: Path
) -> None:
    make = run_scripted(Tool(name="Bash", input={"command": "make"}, takes=1000))
    job = Job(id="a", prompt=make, provider="actor", deadline=0.5)
    batch(terminal.store, tmp_path / "night", job, until="tool_call_started")
    code, out, err = terminal("resume", "a", "fix it", "--deadline", "60")
    assert code == 0, err
    assert out.startswith("You were interrupted while a tool call was running (Bash). Its outcome")
    assert out.endswith(" fix it")


def test_a_follow_up_leaves_its_batch_as_it_was(terminal: CommandTerminal, tmp_path: Path) -> None:
    out = tmp_path / "night"
    jobs = [
        Job(id="done", prompt="x", provider="actor"),
        Job(id="failed", prompt=SCRIPTS["failed"], provider="actor"),
    ]
    first = batch(terminal.store, out, *jobs)
    lines = (out / "results.jsonl").read_text()
    for name in first:
        assert terminal("resume", name, MORE)[0] == 0
    assert (out / "results.jsonl").read_text() == lines
    batch(terminal.store, out, jobs[0])
    assert len(runs_of(terminal, "done")) == 2
    (done,) = [line for line in lines.splitlines() if json.loads(line)["job"] == "done"]
    assert done in (out / "results.jsonl").read_text().splitlines()


def test_a_job_of_several_batches_is_named_with_its_batch(
    terminal: CommandTerminal, tmp_path: Path
) -> None:
    job = Job(id="a", prompt="x", provider="actor")
    of = {name: batch(terminal.store, tmp_path / name, job)["a"] for name in ("one", "two")}
    code, out, err = terminal("resume", "a", MORE)
    assert (code, out) == (1, "")
    head, *candidates = err.splitlines()
    assert head.endswith("2 batches have a job 'a'; use a session id, or add --batch OUT:")
    for name, result in of.items():
        (line,) = [each for each in candidates if result.session_id in each]
        assert "session, completed, " in line
        assert line.endswith(str(tmp_path / name))
    code, out, err = terminal("resume", "a", MORE, "--batch", str(tmp_path / "one"))
    assert (code, out) == (0, "and so on"), err
    assert len(runs_of(terminal, of["one"].session_id)) == 2
    assert len(runs_of(terminal, of["two"].session_id)) == 1
    code, out, err = terminal("costs", "a", "--batch", str(tmp_path / "two"))
    assert (code, of["two"].session_id in out) == (0, True), err
    code, _, err = terminal("resume", "b", MORE, "--batch", str(tmp_path / "one"))
    assert code == 1
    assert err.endswith(f"--batch {tmp_path / 'one'}: no stored session of a job 'b' in this batch")


async def test_a_job_that_is_on_is_not_followed_up(
    terminal: CommandTerminal, tmp_path: Path
) -> None:
    job = Job(id="a", prompt=SCRIPTS["timed_out"], provider="actor")
    async with (
        open_manager(store=terminal.store, adapters={"actor": scripted("actor")}) as manager,
        run_batch(manager, [job], out=tmp_path / "night") as results,
    ):
        assert results.progress().total == 1
        with trio.fail_after(PATIENCE):
            _, said, _ = await trio.to_thread.run_sync(terminal, "events", "a")
            while "message_received" not in said:  # its session is stored before its run
                _, said, _ = await trio.to_thread.run_sync(terminal, "events", "a")
        code, _, err = await trio.to_thread.run_sync(terminal, "resume", "a", MORE)
        assert code == 1
        assert f"is on, and process {os.getpid()} owns its session: wait for it" in err


async def cancel_by_job(terminal: CommandTerminal, store: Path, out: Path) -> RunResult:
    """Run a job after another one with the same id, and cancel it by that id while it is active."""
    before = Job(id="a", prompt="x", provider="actor")
    job = Job(id="a", prompt=SCRIPTS["timed_out"], provider="actor")
    async with open_manager(store=store, adapters={"actor": scripted("actor")}) as manager:
        async with run_batch(manager, [before], out=out / "one") as results:
            assert [each.status async for each in results] == ["completed"]
        async with run_batch(manager, [job], out=out / "two") as results:
            words = ("events", "a", "--batch", str(out / "two"))
            with trio.fail_after(PATIENCE):
                _, said, _ = await trio.to_thread.run_sync(terminal, *words)
                while "message_received" not in said:
                    _, said, _ = await trio.to_thread.run_sync(terminal, *words)
            code, _, err = await trio.to_thread.run_sync(terminal, "show", "a")
            assert (code, "2 batches have a job 'a'" in err) == (1, True)
            words = ("cancel", "a", "--reason", "wrong branch")
            code, said, err = await trio.to_thread.run_sync(terminal, *words)
            assert (code, err) == (0, "")
            assert said.endswith("is being cancelled")
            (result,) = [each async for each in results]
    return result


def test_a_job_is_cancelled_by_its_id_and_followed_up(
    terminal: CommandTerminal, tmp_path: Path
) -> None:
    result = trio.run(cancel_by_job, terminal, terminal.store, tmp_path)
    assert (result.status, result.detail) == ("cancelled", "wrong branch")
    code, out, err = terminal("resume", "a", MORE, "--batch", str(tmp_path / "two"))
    assert (code, out) == (0, "and so on"), err
    assert runs_of(terminal, result.session_id)[1]["resumed_from"] == result.id


def test_a_job_that_its_batch_will_try_again_is_not_followed_up(
    terminal: CommandTerminal, tmp_path: Path
) -> None:
    out = tmp_path / "night"
    batch(terminal.store, out, Job(id="a", prompt=SCRIPTS["failed"], provider="actor"))
    with closing(sqlite3.connect(out / "ledger.db")) as ledger, ledger:
        ledger.execute("update job set state = 'retrying'")
    place = BatchDirectory(out)
    code, _, err = terminal("resume", "a", MORE)
    assert code == 1
    assert err.endswith(
        f"the job 'a' is retrying in the batch {out}, which process {os.getpid()} is "
        "running: wait until the job has ended there"
    )
    place.close()
    assert terminal("resume", "a", MORE)[0] == 0


def forget_what_was_asked(store: Path) -> None:
    """Make a store look as if an older version had written it."""
    without = "cast(json_remove(cast({column} as text), '{path}') as blob)"
    asked = without.format(column="body", path="$.asked")
    out = without.format(column="first_body", path="$.metadata.out")
    with closing(sqlite3.connect(store)) as db, db:
        db.execute(f"update events set body = {asked} where type = 'run_started'")
        db.execute(f"update sessions set first_body = {out}, body = null")


def test_a_job_of_an_older_version_is_followed_up_with_what_its_batch_has_on_record(
    terminal: CommandTerminal, tmp_path: Path
) -> None:
    out = tmp_path / "night"
    job = Job(
        id="a", prompt="x", provider="actor", permission_mode=PermissionMode.PLAN, deadline=77
    )
    batch(terminal.store, out, job)
    forget_what_was_asked(terminal.store)
    code, _, err = terminal("resume", "a", MORE)
    assert code == 1
    assert "only the batch's directory records what the job" in err
    assert err.endswith("add --batch OUT")
    code, said, err = terminal("resume", "a", MORE, "--batch", str(out))
    assert (code, said) == (0, "and so on"), err
    _, events, _ = terminal("events", "a", "--json", "--type", "run_started")
    first, second = map(json.loads, events.splitlines())
    assert "asked" not in first
    assert second["asked"]["clocks"] == {"deadline": 77}
    assert second["permission"]["asked"] == "plan"


SECRET = "s3cr3t-0123456789"


def test_a_secret_option_is_stored_nowhere_and_is_taken_from_flags_or_settings(
    terminal: CommandTerminal,
) -> None:
    option = ["--option", "headers=" + json.dumps({"Authorization": SECRET})]
    code, _, err = terminal("run", "-p", "actor", run_scripted(Say(text=SECRET)), *option)
    assert code == 0, err
    assert SECRET.encode() not in terminal.store.read_bytes()
    name = str(json.loads(terminal("sessions", "--json")[1])["id"])
    code, out, err = terminal("resume", name, MORE)
    assert (code, out) == (1, "")
    assert "secrets are not stored (headers.Authorization)" in err
    assert terminal("resume", name, MORE, *option)[:2] == (0, "and so on")
    settings = terminal.home / "config" / "sessionmgr" / "sessionmgr.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(f'[options.actor.headers]\nAuthorization = "{SECRET}"\n')
    assert terminal("resume", name, MORE)[:2] == (0, "and so on")
    assert SECRET.encode() not in terminal.store.read_bytes()


def test_the_owner_of_a_session_in_another_container_is_no_process_of_ours() -> None:
    here = ManagerOwner("here")
    now = time.time()
    expires = int(now * 1000) + 60_500
    lease = Lease(name="ses_1", owner=here.owner, fence=1, expires=expires)
    here.register()
    try:
        assert owner_name(lease) == f"process {os.getpid()}"
    finally:
        here.unregister()
    elsewhere = replace(here.owner, namespace="pid:[1]", pid=1)
    named = owner_name(replace(lease, owner=elsewhere))
    assert named.startswith("process 1 of another container, or one that cannot be seen from here")
    left = re.search(r"lasts (\d+) s more", named)
    assert left is not None
    assert 60 - (time.time() - now) <= int(left[1]) <= 60


def test_a_follow_up_gets_the_defaults_of_its_own_provider(
    terminal: CommandTerminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SESSIONMGR_PROVIDER", "shell")
    batch(terminal.store, tmp_path / "night", Job(id="a", prompt=MORE, provider="actor"))
    for provider in ("shell", "actor"):
        words = ("run", "--resume", "a", MORE, "--set", f"{provider}.permission_mode=plan")
        code, _, err = terminal(*words)
        assert code == 0, err
    asked = [run["permission"] for run in runs_of(terminal, "a")]
    assert [isinstance(each, dict) and each["asked"] for each in asked] == [
        *("default", "default", "plan"),
    ]
