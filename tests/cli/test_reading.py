"""Stored runs are listed, shown, followed, exported, counted and pruned from any terminal."""

import base64
import json
import os
import re
import subprocess
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
import trio

from sessionmgr import Job, open_manager, run_batch
from sessionmgr.model import ImageReceived
from sessionmgr.model.run import decode_result
from sessionmgr.store import open_sqlite_store
from sessionmgr.testing.scripted_provider import (
    Ask,
    Emit,
    Fail,
    Hang,
    Say,
    Tool,
    Use,
    Wait,
    scripted,
)
from sessionmgr.testing.store_conformance.sample_records import put_blob
from tests.cli.command import COMMAND, environment
from tests.cli.command_terminal import CommandTerminal
from tests.cli.stored_runs import open_run_owner, store_runs
from tests.manager.harness import run_scripted

DANGEROUS = "red \x1b[31m and \x07 bell"


def test_with_no_store_there_is_nothing_and_none_is_made(terminal: CommandTerminal) -> None:
    path = terminal.home / "state" / "sessionmgr" / "sessionmgr.db"
    for verb in ("sessions", "costs"):
        assert terminal.bare(verb) == (
            0,
            "",
            f"sessionmgr: nothing is stored yet: {path} does not exist",
        )
    code, out, err = terminal.bare("show", "run_1")
    assert (code, out) == (1, "")
    assert err == f"sessionmgr: error: nothing is stored yet: {path} does not exist"
    assert not path.parent.exists()
    assert terminal.bare("sessions", "-q") == (0, "", "")


def test_sessions_are_listed_the_newest_first(terminal: CommandTerminal) -> None:
    done, failed = store_runs(
        terminal.store,
        run_scripted(Say(text="x"), Use(output=5, usd=0.25)),
        run_scripted(Say(text="y"), Fail()),
    )
    code, out, err = terminal("sessions")
    lines = out.splitlines()
    assert (code, err, len(lines)) == (0, "", 3)
    assert lines[0].split() == "SESSION PROVIDER STATUS STARTED TOOK COST PROMPT".split()
    assert lines[1].startswith(failed.session_id[:12])
    assert "failed" in lines[1]
    assert "$0.25" in lines[2]
    code, out, _ = terminal("sessions", "--json")
    told = [json.loads(line) for line in out.splitlines()]
    assert [each["id"] for each in told] == [failed.session_id, done.session_id]
    assert told[1]["cost"] == {"usd": 0.25, "provenance": "reported"}
    assert told[1]["status"] == "completed"


def test_the_job_and_the_directory_of_a_session_are_listed(
    terminal: CommandTerminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        jobs = [Job(id="core-11", prompt="fix it", provider="actor", cwd=str(tmp_path))]
        async with (
            open_manager(store=terminal.store, adapters={"actor": scripted("actor")}) as manager,
            run_batch(manager, jobs) as results,
        ):
            assert [each.status async for each in results] == ["completed"]

    trio.run(main)
    monkeypatch.setenv("COLUMNS", "200")
    _, out, _ = terminal("sessions")
    titles, line = out.splitlines()
    assert (
        titles.split() == "SESSION JOB PROVIDER STATUS STARTED TOOK COST DIRECTORY PROMPT".split()
    )
    assert "core-11" in line
    assert str(tmp_path) in line
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = terminal("sessions")
    titles, line = out.splitlines()
    assert titles.split() == "SESSION JOB PROVIDER STATUS STARTED TOOK COST PROMPT".split()
    assert line.endswith("fix it")
    for words in (["show"], ["events"], ["export"], ["show", "--batch", "nowhere"]):
        code, out, _ = terminal(*words, "core-11")
        assert (code, bool(out)) == ((1, False) if "--batch" in words else (0, True))


def test_sessions_are_chosen(terminal: CommandTerminal) -> None:
    results = store_runs(
        terminal.store,
        run_scripted(Say(text="x")),
        run_scripted(Fail()),
        run_scripted(Say(text="z")),
    )

    def chosen(*words: str) -> list[str]:
        code, out, _ = terminal("sessions", "--json", *words)
        assert code == 0
        return [json.loads(line)["run_id"] for line in out.splitlines()]

    assert chosen("--status", "failed") == [results[1].id]
    assert chosen("--status", "completed") == [results[2].id, results[0].id]
    assert chosen("--status", "completed", "--limit", "1") == [results[2].id]
    assert chosen("--limit", "1") == [results[2].id]
    assert chosen("--provider", "nobody") == []
    assert len(chosen("--provider", "actor", "--since", "1h")) == 3
    assert chosen("--since", "2200-01-01") == []
    assert terminal("sessions", "--status", "paused") == (
        0,
        "",
        "sessionmgr: No sessions match.",
    )


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_a_table_fits_however_narrow_the_terminal_is(
    terminal: CommandTerminal, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_runs(
        terminal.store, run_scripted(Say(text="漢字" * 50)), run_scripted(Fail(message="x" * 300))
    )
    monkeypatch.setenv("COLUMNS", str(columns))
    for words in (["sessions"], ["costs"]):
        _, out, _ = terminal(*words)
        for line in out.splitlines():
            wide = sum(2 if character in "漢字" else 1 for character in line)
            assert wide <= columns, line


def test_a_run_is_shown_with_its_end_its_tools_and_what_it_cost(
    terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "5000")
    (done,) = store_runs(
        terminal.store,
        run_scripted(
            Tool(name="bash", input={"command": "ls"}),
            Ask(tool="rm"),
            Use(input=1200, output=5, usd=0.5),
            Say(text=DANGEROUS),
        ),
    )
    code, out, err = terminal("show", done.id)
    assert (code, err) == (0, "")
    told = dict(line.split(maxsplit=1) for line in out.splitlines() if " " in line)
    assert told["run"] == done.id
    assert told["status"] == "completed, stop reason end_turn"
    assert told["tools"] == "bash 1, rm 1 (0 failed, 1 denied)"
    assert told["denied"] == "rm: no approver is configured"
    assert told["tokens"] == "1,200 in, 5 out"
    assert told["cost"] == "$0.5000 (reported)"
    assert told["permission"].startswith("default")
    assert "\x1b" not in out
    assert "\x07" not in out
    code, out, _ = terminal("show", done.id[4:12], "--json")
    assert decode_result(out.encode()) == done


def test_a_failure_is_shown_with_what_can_be_done(terminal: CommandTerminal) -> None:
    (failed,) = store_runs(
        terminal.store, run_scripted(Fail(message="overloaded, it says", retryable=True))
    )
    _, out, _ = terminal("show", failed.id)
    assert "overloaded, it says" in out
    assert "retryable" in out


def test_a_session_is_shown_with_its_runs(terminal: CommandTerminal) -> None:
    (done,) = store_runs(terminal.store, run_scripted(Say(text="hello")))
    code, out, _ = terminal("show", done.session_id)
    assert code == 0
    assert re.search(rf"{done.id} +completed", out)
    _, out, _ = terminal("show", done.session_id, "--json")
    told = json.loads(out)
    assert told["id"] == done.session_id
    assert [each["id"] for each in told["runs"]] == [done.id]


def test_a_session_says_how_each_of_its_runs_ended(
    terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")

    async def main() -> str:
        async with open_manager(
            store=terminal.store, adapters={"actor": scripted("actor")}
        ) as manager:
            session = await manager.open_session("actor")
            await (await session.submit(run_scripted(Fail(message="no such branch")))).result()
            run = await session.submit(run_scripted(Hang()))
            run.cancel("wrong branch")
            await run.result()
            return session.id

    _, out, _ = terminal("show", trio.run(main))
    failed, cancelled = out.splitlines()[-2:]
    assert failed.endswith("no such branch")
    assert cancelled.endswith("user, wrong branch")


def test_a_shortened_id_must_not_stand_for_two(terminal: CommandTerminal) -> None:
    one, other = store_runs(terminal.store, "fix the tests", "write a changelog")
    code, out, err = terminal("show", "run_")
    assert (code, out) == (1, "")
    first, *candidates = err.splitlines()
    assert first == "sessionmgr: error: several ids begin with 'run_'; type more of the id:"
    assert len(candidates) == 2
    for each, words in ((one, "fix the tests"), (other, "write a changelog")):
        (said,) = [line for line in candidates if each.id in line]
        assert "run, completed, " in said
        assert f'ago, "{words}"' in said
    code, _, err = terminal("show", "run_zzzz")
    assert (code, err) == (
        1,
        (
            "sessionmgr: error: no session, run or snapshot 'run_zzzz' is stored; "
            "sessionmgr sessions lists the known ones"
        ),
    )
    code, _, err = terminal("show", "")
    assert code == 1


def test_events_are_lines_for_people_or_the_record_itself(terminal: CommandTerminal) -> None:
    (done,) = store_runs(
        terminal.store,
        run_scripted(Tool(name="bash", input={"command": "ls -l"}), Say(text=DANGEROUS)),
    )
    code, out, _ = terminal("events", done.session_id)
    lines = out.splitlines()
    assert code == 0
    assert [int(line.split()[0]) for line in lines] == list(range(1, done.last_seq + 1))
    assert any(line.endswith("tool_call_started        bash ls -l") for line in lines)
    assert "\x1b" not in out
    _, out, _ = terminal("events", done.id, "--json", "--after", "4")
    told = [json.loads(line) for line in out.splitlines()]
    assert [each["seq"] for each in told] == list(range(5, done.last_seq + 1))
    assert told[-1]["type"] == "run_completed"
    _, out, _ = terminal("events", done.id, "--type", "run_started", "--type", "run_completed")
    assert len(out.splitlines()) == 2


def test_streamed_pieces_are_lines_for_people_and_events_for_programs(
    terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    words = " ".join(f"word{number}" for number in range(40))
    (done,) = store_runs(
        terminal.store, run_scripted(Say(text=f"a first line\n{words}", deltas=60))
    )
    _, out, _ = terminal("events", done.id, "--json", "--type", "message_streamed")
    assert len(out.splitlines()) == 60
    _, out, _ = terminal("events", done.id)
    lines = [line.partition("message_streamed")[2].strip() for line in out.splitlines()]
    streamed = [line for line in lines if line]
    assert streamed[0] == "a first line"
    assert " ".join(streamed[1:]) == words
    assert len(streamed) < 10
    assert all(len(line) <= 100 for line in out.splitlines())


def test_following_a_run_goes_to_its_end(terminal: CommandTerminal, tmp_path: Path) -> None:
    with open_run_owner(tmp_path, Say(text="one"), Wait(seconds=0.5), Say(text="two")) as owner:
        code, out, err = terminal("events", owner.run_id, "--follow", "--json")
        assert (code, err) == (0, "")
        told = [json.loads(line) for line in out.splitlines()]
        assert told[-1]["type"] == "run_completed"
        assert len({each["seq"] for each in told}) == len(told)
        assert owner.wait_for_end().startswith("completed")
    again = terminal("events", owner.run_id, "--follow", "--json")
    assert again == (code, out, err)


def test_following_a_run_without_an_owner_ends(terminal: CommandTerminal, tmp_path: Path) -> None:
    with open_run_owner(tmp_path, Hang()) as owner:
        owner.process.kill()
        owner.process.wait()
        code, _, err = terminal("events", owner.run_id, "--follow")
        assert code == 0
        assert err == "sessionmgr: the process that owned the run is gone; no more events"


def test_ctrl_c_ends_following_with_130(tmp_path: Path) -> None:
    with open_run_owner(tmp_path, Say(text="one"), Hang()) as owner:
        words = ["events", owner.run_id, "--follow", "--store", str(owner.store)]
        with subprocess.Popen(
            [*COMMAND, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env=environment(tmp_path),
        ) as process:
            assert process.stdout is not None
            while "one" not in process.stdout.readline():
                pass
            process.send_signal(2)
            _, err = process.communicate(timeout=60)
            assert (process.returncode, err) == (130, "")


def test_an_export_holds_all_of_a_session(terminal: CommandTerminal) -> None:
    image = ImageReceived(media_type="image/png", blob=sha256(b"hello").hexdigest(), bytes=5)
    (done,) = store_runs(terminal.store, run_scripted(Say(text="x"), Emit(event=image)))

    async def put() -> None:
        async with open_sqlite_store(terminal.store) as store:
            await put_blob(store, b"hello")

    trio.run(put)
    code, out, _ = terminal("export", done.id)
    assert code == 0
    told = [json.loads(line) for line in out.splitlines()]
    kinds = [next(iter(each)) for each in told]
    assert kinds[:2] == ["session", "run"]
    assert kinds.count("event") == done.last_seq
    assert msgspec.convert(told[1]["run"], dict)["id"] == done.id
    assert base64.b64decode(told[-1]["blob"]["base64"]) == b"hello"


def test_costs_are_summed_by_session_run_provider_and_day(terminal: CommandTerminal) -> None:
    one, two = store_runs(
        terminal.store,
        run_scripted(Use(input=10, usd=0.25)),
        run_scripted(Use(output=7, usd=0.5), Use(output=1)),
    )

    def told(*words: str) -> list[dict[str, object]]:
        code, out, _ = terminal("costs", "--json", *words)
        assert code == 0
        return [json.loads(line) for line in out.splitlines()]

    assert {each["key"]: each["usd"] for each in told()} == {
        one.session_id: 0.25,
        two.session_id: 0.5,
    }
    assert [(each["key"], each["usd"]) for each in told("--by", "provider")] == [("actor", 0.75)]
    assert [each["usd"] for each in told("--by", "day")] == [0.75]
    by_run = {each["key"]: each["usd"] for each in told("--by", "run")}
    assert by_run == {one.id: 0.25, two.id: 0.5}
    assert told("--by", "run", "--since", "2200-01-01") == []
    assert told("--by", "run", "--provider", "nobody") == []
    assert [each["key"] for each in told(two.id, one.session_id)] == [two.id, one.session_id]
    assert [each["key"] for each in told(one.id, one.session_id)] == [one.session_id]
    assert [each["key"] for each in told(one.id, one.id)] == [one.id]
    assert told(two.id)[0]["unpriced"] == 1
    code, _, err = terminal("costs", "--by", "day", one.id)
    assert (code, err) == (*(1, "sessionmgr: error: costs: --by cannot be combined with ids"),)
    assert told("--since", "2200-01-01") == []
    _, out, _ = terminal("costs")
    lines = out.splitlines()
    assert lines[-1].split() == ["all", "10", "0", "0", "8", "$0.7500+", "(partial)"]


def test_a_session_without_costs_has_none(terminal: CommandTerminal) -> None:
    (done,) = store_runs(terminal.store, run_scripted(Say(text="x")))
    _, out, _ = terminal("costs", done.id)
    assert out.splitlines()[-1].split() == [done.id, "0", "0", "0", "0", "-"]


def test_streamed_pieces_of_old_runs_are_dropped(terminal: CommandTerminal) -> None:
    (done,) = store_runs(terminal.store, run_scripted(Say(text="a b c d", deltas=4)))
    assert terminal("prune") == (0, "deleted 0 events of 0 runs, 0.0 MB", "")
    code, out, _ = terminal("prune", "--before", "0s", "--session", done.session_id, "--json")
    assert code == 0
    assert json.loads(out)["runs"] == 1
    _, out, _ = terminal("events", done.id)
    assert "events_pruned" in out


def test_old_sessions_are_removed_and_others_stay(terminal: CommandTerminal) -> None:
    (done,) = store_runs(terminal.store, run_scripted(Say(text="a b c d" * 100_000)))
    assert terminal("prune", "--older-than", "30d")[1] == "deleted 0 sessions with 0 events, 0.0 MB"
    code, out, err = terminal("prune", "--older-than", "0s", "--session", done.session_id)
    assert (code, err) == (0, "")
    assert re.fullmatch(
        r"deleted 1 sessions with \d+ events, \d\.\d MB; the file is \d\.\d MB smaller", out
    )
    assert terminal("show", done.session_id)[0] == 1
    assert terminal("prune", "--older-than", "0s", "--before", "0s")[0] == 1
    _, out, _ = terminal("prune", "--older-than", "0s", "--json")
    assert json.loads(out) == {"sessions": 0, "events": 0, "blobs": 0, "size": 0, "freed": 0}


def test_a_reader_that_has_had_enough_is_no_error(terminal: CommandTerminal) -> None:
    (done,) = store_runs(
        terminal.store, run_scripted(*(Say(text=f"line {n} " + "x" * 200) for n in range(400)))
    )
    ran = subprocess.run(
        f"{' '.join(COMMAND)} events {done.id} --store {terminal.store} | head -2",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        encoding="utf-8",
        check=False,
        env=environment(terminal.home),
        timeout=60,
    )
    assert len(ran.stdout.splitlines()) == 2
    assert ran.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_under_stdout_is_reported(terminal: CommandTerminal) -> None:
    store_runs(terminal.store, run_scripted(Say(text="x")))
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [*COMMAND, "sessions", "--store", str(terminal.store)],
            stdout=full,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            check=False,
            env=environment(terminal.home),
            timeout=60,
        )
    assert ran.returncode == 1
    assert ran.stderr == "sessionmgr: error: stdout: No space left on device\n"


def test_the_default_store_is_found_by_its_place(terminal: CommandTerminal) -> None:
    store = terminal.home / "state" / "sessionmgr" / "sessionmgr.db"
    store.parent.mkdir(parents=True)
    (done,) = store_runs(store, run_scripted(Say(text="x")))
    _, out, _ = terminal.bare("sessions")
    assert done.session_id[:12] in out


def test_a_run_that_is_on_is_shown_as_it_stands(terminal: CommandTerminal, tmp_path: Path) -> None:
    with open_run_owner(tmp_path, Say(text="so far"), Hang()) as owner:
        _, out, _ = terminal("sessions", "--status", "running")
        assert owner.session_id[:12] in out
        _, out, _ = terminal("show", owner.session_id)
        assert f"owned by process {owner.process.pid}" in out


def test_a_session_that_was_closed_without_a_run_is_no_trouble(terminal: CommandTerminal) -> None:
    async def main() -> None:
        async with open_manager(store=terminal.store) as manager:
            await (await manager.open_session("shell")).close()

    trio.run(main)
    assert terminal("sessions")[0] == 0
    assert os.environ["HOME"] == str(terminal.home)
