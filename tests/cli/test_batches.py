"""Batches, their jobs and their questions are visible from any terminal."""

import json
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio

from sessionmgr import Allow, ApprovalRequest, Decision, Job, open_manager, run_batch
from sessionmgr.batch import Batch
from sessionmgr.cli.terminal.format_path import fit_path
from sessionmgr.cli.terminal.safe_text import display_width
from sessionmgr.testing.scripted_provider import Ask, Fail, Say, Use, scripted
from tests.cli.command_terminal import CommandTerminal, Said
from tests.manager.harness import run_scripted

ASKS = run_scripted(Use(output=7, usd=0.25), Ask(tool="Bash", input={"command": "rm -rf build"}))


class Running:
    """A batch that runs in this process, and commands that run meanwhile."""

    def __init__(self, terminal: CommandTerminal, batch: Batch) -> None:
        self._terminal = terminal
        self.batch = batch

    async def type(self, *words: str) -> Said:
        return await trio.to_thread.run_sync(self._terminal, *words)


def running(
    terminal: CommandTerminal, out: Path | None, work: Callable[[Running], Awaitable[None]]
) -> None:
    """Run a batch of three jobs: one completes, one fails, and one asks."""
    asked, answered = trio.Event(), trio.Event()

    async def approve(request: ApprovalRequest) -> Decision:
        del request
        asked.set()
        await answered.wait()
        return Allow()

    async def main() -> None:
        for name in ("api", "web"):
            (terminal.home / name).mkdir(exist_ok=True)
        jobs = [
            Job(id="good", prompt=run_scripted(Say(text="x")), provider="actor", cwd="api"),
            Job(
                id="bad", prompt=run_scripted(Fail(message="no luck")), provider="actor", cwd="api"
            ),
            Job(id="asker", prompt=ASKS, provider="actor", cwd="web"),
        ]
        async with open_manager(
            store=terminal.store, adapters={"actor": scripted("actor")}
        ) as manager:
            batch = run_batch(manager, jobs, out=out, approve=approve, retries=0, concurrency=3)
            async with batch:
                results = aiter(batch)
                for _ in range(2):
                    await anext(results)
                await asked.wait()
                await work(Running(terminal, batch))
                answered.set()
                await batch.wait()

    trio.run(main)


def test_a_running_batch_is_seen_from_another_terminal(
    terminal: CommandTerminal, tmp_path: Path
) -> None:
    out = tmp_path / "runs" / "night"

    async def look(running: Running) -> None:
        code, said, err = await running.type("batches")
        assert (code, err) == (0, "")
        titles, line = said.splitlines()
        wanted = "BATCH JOBS DONE FAILED RUNNING WAITING COST STARTED CHANGED PID"
        assert set(titles.split()) <= set(wanted.split())
        assert line.split()[:6] == ["runs/night", "3", "1", "1", "1", "$0.2500+"]
        (told,) = map(json.loads, (await running.type("batches", "--json"))[1].splitlines())
        assert (told["out"], told["running"], told["cost"]["usd"]) == (str(out), 1, 0.25)
        assert told["batch"] == running.batch.id
        code, said, _ = await running.type("status")
        lines = said.splitlines()
        assert code == 0
        assert lines[0].startswith("runs/night: running in process ")
        assert "2 of 3 jobs" in lines[1]
        assert "asker" in lines[3]
        assert "waiting for approval" in lines[3]
        assert lines[4] == "✗ bad failed: provider_error: no luck"
        state = json.loads((await running.type("status", str(out), "--json"))[1])
        assert state["progress"]["jobs"][0]["job"] == "asker"
        assert state["failed_jobs"][0]["job"] == "bad"
        assert (await running.type("status", str(tmp_path)))[0] == 1

    running(terminal, out, look)
    code, said, _ = terminal("status", "--follow")
    assert code == 0
    assert said.startswith("runs/night: not running, last changed ")
    assert "3 of 3 jobs" in said
    assert terminal("batches", "--running") == (0, "", "sessionmgr: No batches match.")


def test_a_question_of_a_job_is_listed_and_answered_by_its_number(
    terminal: CommandTerminal, tmp_path: Path
) -> None:
    async def answer(running: Running) -> None:
        code, said, err = await running.type("questions")
        assert (code, "sessionmgr approve NUMBER" in err) == (0, True)
        assert said.startswith("   1  Bash: rm -rf build\n")
        assert "actor asks for job asker of runs/night in " in " ".join(said.split())
        (told,) = map(json.loads, (await running.type("questions", "--json"))[1].splitlines())
        assert (told["number"], told["job"], told["until"] is not None) == (1, "asker", True)
        _, said, _ = await running.type("sessions", "--status", "asks", "--json")
        assert json.loads(said)["status"] == "asks"
        assert (await running.type("sessions", "--status", "running"))[1] == ""
        code, _, err = await running.type("approve", "2", "allow")
        assert (code, "no question has the number 2" in err) == (1, True)
        code, said, err = await running.type("approve", "1", "allow", "--json")
        assert (code, err) == (0, "")
        answered = json.loads(said)
        assert (answered["question"], answered["wants"]) == (told["id"], "Bash: rm -rf build")
        await running.batch.wait()
        code, _, err = await running.type("approve", "1", "allow")
        assert (code, f"question 1 ({told['id']}) is no longer open" in err) == (1, True)
        assert await running.type("questions") == (0, "", "sessionmgr: No questions are open.")

    running(terminal, tmp_path / "runs" / "night", answer)


def test_the_only_open_question_needs_no_number(terminal: CommandTerminal, tmp_path: Path) -> None:
    async def answer(running: Running) -> None:
        code, said, _ = await running.type("approve", "deny", "--reason", "not now")
        assert (code, said.endswith(": denied Bash: rm -rf build")) == (0, True)

    running(terminal, tmp_path / "out", answer)


def test_a_batch_whose_directory_is_gone_is_listed_from_its_sessions(
    terminal: CommandTerminal, tmp_path: Path
) -> None:
    async def nothing(running: Running) -> None:
        await running.type("approve", "allow")

    running(terminal, tmp_path / "out", nothing)
    shutil.rmtree(tmp_path / "out")
    running(terminal, None, nothing)
    records = [json.loads(line) for line in terminal("batches", "--json")[1].splitlines()]
    assert [(each["out"], each["removed"]) for each in records] == [
        (None, False),
        (str(tmp_path / "out"), True),
    ]
    for each in records:
        assert (each["jobs"], each["done"], each["failed"], each["pid"]) == (3, 2, 1, None)
    assert terminal("status")[0] == 1


def test_the_store_of_a_batch_is_found_by_its_directory(
    terminal: CommandTerminal, tmp_path: Path
) -> None:
    out = tmp_path / "out"

    async def look(running: Running) -> None:
        code, said, err = await trio.to_thread.run_sync(terminal.bare, "status", str(out))
        assert (code, "waiting for approval" in said) == (0, True)
        assert err.endswith("sessionmgr show bad --batch out --store runs.db")

    running(terminal, out, look)


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_every_line_fits_however_narrow_the_terminal_is(
    terminal: CommandTerminal, tmp_path: Path, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(running: Running) -> None:
        await running.type("approve", "allow")

    out = tmp_path / "a rather long name of a directory" / "漢字"
    running(terminal, out, nothing)
    monkeypatch.setenv("COLUMNS", str(columns))
    for words in (["batches"], ["status", str(out)], ["sessions"], ["costs"]):
        for line in terminal(*words)[1].splitlines():
            assert display_width(line) <= columns, line


@pytest.mark.parametrize("by", ["job", "batch", "model"])
def test_costs_are_summed_by_job_batch_and_model(
    terminal: CommandTerminal, tmp_path: Path, by: str
) -> None:
    async def nothing(running: Running) -> None:
        await running.type("approve", "allow")

    out = tmp_path / "out"
    running(terminal, out, nothing)
    lines = [json.loads(line) for line in terminal("costs", "--by", by, "--json")[1].splitlines()]
    key = {"job": "asker", "batch": str(out), "model": "unknown"}[by]
    (line,) = [each for each in lines if each["key"] == key]
    assert line["usd"] == 0.25
    titles = terminal("costs", "--by", by)[1].splitlines()[0].split()
    assert titles[0] == by.upper()
    if by == "job":
        assert (line["batch"], line["cwd"]) == (str(out), str(tmp_path / "web"))


def test_sessions_in_several_directories_show_their_directory(
    terminal: CommandTerminal, tmp_path: Path
) -> None:
    async def nothing(running: Running) -> None:
        await running.type("approve", "allow")

    running(terminal, tmp_path / "out", nothing)
    lines = terminal("sessions")[1].splitlines()
    assert lines[0].split() == "SESSION JOB PROVIDER STATUS STARTED TOOK COST DIRECTORY".split()
    assert {line.split()[-1] for line in lines[1:]} == {"api", "web"}


def test_a_path_keeps_its_end_where_it_is_cut() -> None:
    assert fit_path("/home/me/runs/night", 12) == "…/runs/night"
    assert fit_path("runs/night", 12) == "runs/night"
    for width in range(1, 12):
        assert display_width(fit_path("/home/漢字/漢字", width)) <= width
