"""The verb `batch`: results, continuing, exit codes; the installed command: progress, Ctrl-C."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.command import COMMAND, environment, run_command
from tests.cli.command_terminal import CommandTerminal
from tests.cli.pseudo_terminal import (
    assert_no_process_left,
    at_terminal,
    processes_with,
    unique_seconds,
)
from tests.cli.scripted_agent import install_scripted_agent
from tests.cli.stored_runs import block_store_writes


def write_jobs(directory: Path, *prompts: str, **more: object) -> Path:
    path = directory / "jobs.jsonl"
    jobs = [
        {"id": f"job-{n}", "provider": "shell", "prompt": prompt, **more}
        for n, prompt in enumerate(prompts, 1)
    ]
    path.write_text("".join(json.dumps(job) + "\n" for job in jobs))
    return path


def results_in(directory: Path) -> dict[str, str]:
    lines = (directory / "results.jsonl").read_text().splitlines()
    return {result["job"]: result["status"] for result in map(json.loads, lines)}


def test_all_done_is_exit_code_0_and_nothing_on_stdout(tmp_path: Path) -> None:
    write_jobs(tmp_path, "echo one", "echo two")
    ran = run_command("batch", "jobs.jsonl", env=environment(tmp_path), cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, "")
    assert "2 of 2 jobs completed (in " in ran.stderr
    assert "results:   runs/jobs/results.jsonl" in ran.stderr
    assert "continue:" not in ran.stderr
    assert results_in(tmp_path / "runs/jobs") == {"job-1": "completed", "job-2": "completed"}


def test_what_failed_and_why_stands_in_the_table_and_the_command_to_go_on(
    tmp_path: Path, terminal: CommandTerminal
) -> None:
    write_jobs(tmp_path, "echo one", "ls /nope")
    code, _, err = terminal.bare("batch", "-n", "2", "jobs.jsonl")
    assert code == 3
    assert "✗ job-2 failed: process_exited: exit code 2" in err
    assert "1 of 2 jobs completed, 1 failed" in err
    assert "details (job-2):  sessionmgr show run_" in err
    assert "continue:  sessionmgr batch -n 2 jobs.jsonl" in err.splitlines()


def test_json_prints_each_result_as_it_ends_and_a_rerun_only_what_it_has_done(
    tmp_path: Path, terminal: CommandTerminal
) -> None:
    # The first job waits until the result of the second one exists.
    first = "while ! grep -q job-2 runs/jobs/results.jsonl; do sleep 0.02; done"
    write_jobs(tmp_path, first, "test -e ready", options={"shell": True})
    _, out, _ = terminal.bare("batch", "jobs.jsonl", "--json")
    found = [json.loads(line) for line in out.splitlines()]
    assert [(each["job"], each["status"]) for each in found] == [
        ("job-2", "failed"),
        ("job-1", "completed"),
    ]
    (tmp_path / "ready").touch()
    code, out, err = terminal.bare("batch", "jobs.jsonl", "--json", "-q")
    found = [json.loads(line) for line in out.splitlines()]
    assert [(each["job"], each["attempt"]) for each in found] == [("job-2", 2)]
    assert (code, err) == (0, "")


def test_jobs_from_stdin_become_a_batch_that_can_go_on(
    tmp_path: Path, terminal: CommandTerminal
) -> None:
    jobs = json.dumps({"id": "a", "prompt": "ls nope"}) + "\n"
    env = environment(tmp_path)
    ran = run_command("batch", "-p", "shell", "-", env=env, cwd=tmp_path, stdin=jobs)
    assert ran.returncode == 3
    (out,) = (tmp_path / "runs").iterdir()
    assert out.name.startswith("stdin-")
    place = f"runs/{out.name}"
    assert f"continue:  sessionmgr batch -p shell {place}/jobs.jsonl -o {place}" in ran.stderr
    (tmp_path / "nope").touch()
    again = ["batch", "-p", "shell", f"{place}/jobs.jsonl", "-o", place]
    assert terminal.bare(*again)[0] == 0


def test_batches_from_stdin_that_begin_at_once_are_several(tmp_path: Path) -> None:
    job = json.dumps({"id": "a", "prompt": "true"})
    processes = [
        subprocess.Popen(
            [*COMMAND, "batch", "-q", "-p", "shell", "-"],
            env=environment(tmp_path),
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            encoding="utf-8",
        )
        for _ in range(3)
    ]
    for process in processes:
        process.communicate(job, timeout=240)
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert len(list((tmp_path / "runs").iterdir())) == 3


def test_jobs_from_stdin_lose_none_that_were_there_before(tmp_path: Path) -> None:
    env = environment(tmp_path)
    words = ("batch", "-p", "shell", "-", "-o", "out")
    jobs = "".join(json.dumps({"id": each, "prompt": "true"}) + "\n" for each in "ab")
    assert run_command(*words, env=env, cwd=tmp_path, stdin=jobs).returncode == 0
    none = run_command(*words, env=env, cwd=tmp_path, stdin="")
    assert (none.returncode, none.stderr) == (
        1,
        "sessionmgr: error: stdin: contains no jobs; the jobs in out/jobs.jsonl are unchanged\n",
    )
    fewer = run_command(*words, env=env, cwd=tmp_path, stdin=jobs.splitlines()[0])
    assert fewer.returncode == 0
    assert results_in(tmp_path / "out") == {"a": "completed", "b": "completed"}
    assert run_command(*words, env=env, cwd=tmp_path, stdin="{").returncode == 1
    assert (tmp_path / "out/jobs.jsonl.before").read_text() == jobs.splitlines()[0]


def test_jobs_from_stdin_do_not_touch_a_batch_that_is_on(tmp_path: Path) -> None:
    env = environment(tmp_path)
    write_jobs(tmp_path, "sleep 60")
    with subprocess.Popen(
        [*COMMAND, "batch", "jobs.jsonl", "-o", "out"],
        env=env,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        while not (tmp_path / "out/results.jsonl").exists():
            assert process.poll() is None
            time.sleep(0.01)
        jobs = json.dumps({"id": "a", "prompt": "true", "provider": "shell"})
        ran = run_command("batch", "-", "-o", "out", env=env, cwd=tmp_path, stdin=jobs)
        assert ran.returncode == 1
        assert "is in use by process" in ran.stderr
        assert not (tmp_path / "out/jobs.jsonl").exists()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130


def test_what_an_agent_would_refuse_is_reported_before_anything_runs(
    tmp_path: Path, terminal: CommandTerminal
) -> None:
    write_jobs(tmp_path, "hello", provider="claude", effort="bogus")
    code, _, err = terminal.bare("batch", "jobs.jsonl", "--dry-run")
    assert code == 1
    assert "jobs.jsonl:1: effort: unknown level" in err


def test_a_part_that_is_asked_for_is_all_there_is_to_do(
    tmp_path: Path, terminal: CommandTerminal
) -> None:
    write_jobs(tmp_path, "echo one", "echo two", "ls /nope")
    chosen = ["batch", "jobs.jsonl", "--only", "job-[23]", "--skip", "job-3"]
    assert terminal.bare(*chosen)[0] == 0
    assert results_in(tmp_path / "runs/jobs") == {"job-2": "completed"}
    assert terminal.bare("batch", "jobs.jsonl", "--limit", "1")[0] == 0
    assert results_in(tmp_path / "runs/jobs") == {"job-1": "completed", "job-2": "completed"}


def test_after_so_many_failures_it_stops(tmp_path: Path, terminal: CommandTerminal) -> None:
    write_jobs(tmp_path, "ls /nope", "ls /nope", "ls /nope")
    code, _, err = terminal.bare("batch", "jobs.jsonl", "-n", "1", "--max-failures", "2")
    assert code == 3
    assert "stopped early: " in err
    assert "2 failed, 1 not run" in err


def test_flags_say_what_holds_where_a_job_says_nothing(
    tmp_path: Path, terminal: CommandTerminal
) -> None:
    (tmp_path / "jobs.jsonl").write_text('{"id": "a"}\n{"id": "b", "env": {"WORD": "mine"}}\n')
    _, out, _ = terminal.bare(
        *["batch", "jobs.jsonl", "--json", "-p", "shell", "--prompt", "echo $WORD"],
        *["-n", "shell=1", "--option", "shell=true", "--env", "WORD=yours", "--metadata", "n=1"],
    )
    found = {each["job"]: each for each in map(json.loads, out.splitlines())}
    assert found["a"]["text"] == "yours\n"
    assert found["b"]["text"] == "mine\n"
    assert found["a"]["metadata"] == {"n": 1}


def test_every_wrong_line_is_reported_and_nothing_is_started(
    tmp_path: Path, terminal: CommandTerminal
) -> None:
    lines = [
        '{"id": "a", "provider": "shell", "prompt": "touch started"}',
        '{"id": "b", "provider": "shell", "promt": "x"}',
        '{"id": "a", "provider": "shell", "prompt": "x"}',
        '{"id": "c", "provider": "shel", "prompt": "x"}',
        "{",
    ]
    (tmp_path / "jobs.jsonl").write_text("\n".join(lines))
    code, out, err = terminal("batch", "jobs.jsonl")
    assert (code, out) == (1, "")
    told = err.splitlines()
    assert len(told) == 4
    for line, said in zip(told, ["promt", "a", "shel", ""], strict=True):
        assert line.startswith("sessionmgr: error: jobs.jsonl:")
        assert said in line
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "JOBS"),
        (["nope.jsonl"], "nope.jsonl"),
        (["jobs.jsonl", "-n", "0"], "--concurrency"),
        (["jobs.jsonl", "-n", "shell=many"], "shell"),
        (["jobs.jsonl", "--retry-on", "overlaoded"], "overlaoded"),
        (["jobs.jsonl", "--retries", "-1"], "--retries"),
        (["jobs.jsonl", "--retry-from", "start"], "--retry-from: unknown policy 'start'"),
        (["jobs.jsonl", "--limit", "some"], "--limit: expected a number, 1 or more, got 'some'"),
        (["jobs.jsonl", "--limit", "0"], "--limit: expected a number, 1 or more, got '0'"),
        (["jobs.jsonl", "--option", "timeout=3"], "--option: no provider is chosen"),
        (["jobs.jsonl", "--prompt", "x", "--prompt-file", "y"], "give only one of them"),
        (["jobs.jsonl", "--cwd", "nowhere"], "nowhere"),
        (["jobs.jsonl", "--approve", "nope.toml"], "nope.toml"),
        (["jobs.jsonl", "--out", "jobs.jsonl"], "jobs.jsonl"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_1(
    args: list[str], said: str, terminal: CommandTerminal
) -> None:
    write_jobs(terminal.home, "echo one")
    code, out, err = terminal("batch", *args)
    assert (code, out) == (1, "")
    assert err.startswith("sessionmgr: error: ")
    assert "\n" not in err
    assert said in err


def test_a_dry_run_says_what_would_be_done_and_does_nothing(
    tmp_path: Path, terminal: CommandTerminal
) -> None:
    write_jobs(tmp_path, "touch started", "ls /nope")
    code, out, err = terminal("batch", "jobs.jsonl", "--dry-run", "--skip", "job-2")
    assert code == 0
    assert out.splitlines() == [
        "job-1: would run with shell, default as allow-list (exact)",
        "job-2: is left out with shell, default as allow-list (exact)",
    ]
    assert err == "sessionmgr: dry run: 2 jobs (1 would run, 1 left out); nothing was started"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["jobs.jsonl"]
    code, out, err = terminal("batch", "jobs.jsonl", "--dry-run", "--json")
    assert [json.loads(line)["action"] for line in out.splitlines()] == ["run", "run"]
    assert (code, err) == (0, "")


def test_a_dry_run_tells_what_is_wrong(tmp_path: Path, terminal: CommandTerminal) -> None:
    write_jobs(tmp_path, "echo one", permission_mode="plan")
    code, out, err = terminal("batch", "jobs.jsonl", "--dry-run")
    assert (code, out) == (1, "")
    assert err.startswith("sessionmgr: error: jobs.jsonl:1: permission_mode: ")


def test_rules_answer_what_agents_ask(
    tmp_path: Path, terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rules.toml").write_text(
        '[[rule]]\ntool = "Bash"\ncommand = "npm test"\ndecision = "allow"\n'
    )
    steps = [
        {"do": "ask", "tool": "Bash", "input": {"command": command}, "output": "well"}
        for command in ("npm test --all", "npm publish")
    ]
    write_jobs(tmp_path, json.dumps(steps), provider="scripted")
    monkeypatch.setattr(sys, "path", [install_scripted_agent(tmp_path / "agents"), *sys.path])
    _, out, _ = terminal.bare("batch", "jobs.jsonl", "--json", "--approve", "rules.toml")
    (denial,) = json.loads(out)["permission_denials"]
    assert denial["reason"] == "no rule allows it"
    assert json.loads(out)["tool_calls"]["count"] == {"Bash": 2}


def test_two_commands_are_not_at_the_same_batch(tmp_path: Path) -> None:
    number = unique_seconds()
    write_jobs(tmp_path, f"sleep {number}")
    env = environment(tmp_path)
    with subprocess.Popen(
        [*COMMAND, "batch", "jobs.jsonl"], env=env, cwd=tmp_path, stderr=subprocess.DEVNULL
    ) as first:
        while not processes_with(number):
            assert first.poll() is None
            time.sleep(0.01)
        second = run_command("batch", "jobs.jsonl", env=env, cwd=tmp_path)
        first.send_signal(signal.SIGTERM)
        assert first.wait(60) == 130
    assert second.returncode == 1
    assert f"process {first.pid}" in second.stderr
    assert_no_process_left(number)


def test_ctrl_c_ends_all_that_runs_and_commands_that_were_cut_start_over_if_that_is_decided(
    tmp_path: Path, terminal: CommandTerminal
) -> None:
    number = unique_seconds()
    (tmp_path / "wait").write_text(f"#!/bin/sh\ntest -e done || exec sleep {number}\n")
    (tmp_path / "wait").chmod(0o755)
    write_jobs(tmp_path, "echo one", "./wait", "./wait", "echo four")
    with at_terminal("batch", "jobs.jsonl", "-n", "3", home=tmp_path) as installed:
        installed.wait_for_screen("2 done  2 running")
        # A command that has not started yet would start over without a decision.
        while len(processes_with(number)) < 2:
            time.sleep(0.01)
        installed.type("\x03")
        assert installed.wait() == 130
    assert "Ctrl-C: stopping 2 running jobs; press Ctrl-C again to kill them" in installed.said
    assert "2 of 4 jobs completed" in installed.said
    assert "continue:" not in installed.said  # neither command would run again without a decision
    again = "-n 3 --only job-2 --only job-3 --retry-from fresh"
    assert f"start over (job-2, job-3):  sessionmgr batch jobs.jsonl {again}" in installed.said
    assert_no_process_left(number)
    (tmp_path / "done").touch()
    code, _, err = terminal.bare("batch", "jobs.jsonl", "-n", "3")
    assert code == 3, err
    assert err.count("shell cannot resume a session; --retry-from fresh starts it over") == 4
    code, _, err = terminal.bare("batch", "jobs.jsonl", *again.split())
    assert code == 0, err
    assert set(results_in(tmp_path / "runs/jobs").values()) == {"completed"}


def test_it_is_not_advised_to_start_over_once_more(
    tmp_path: Path, terminal: CommandTerminal
) -> None:
    write_jobs(tmp_path, "false")
    code, _, err = terminal.bare("batch", "jobs.jsonl", "--retry-from", "fresh", "-n", "2")
    assert code == 3
    assert "continue:  sessionmgr batch jobs.jsonl -n 2\n" in err


def test_ctrl_c_twice_leaves_at_once_and_commands_that_were_cut_wait_for_a_decision(
    tmp_path: Path, terminal: CommandTerminal
) -> None:
    number = unique_seconds()
    deaf = f"#!/bin/sh\ntest -e done && exit\ntrap '' TERM INT\nwhile :; do sleep {number}; done\n"
    (tmp_path / "deaf").write_text(deaf)
    (tmp_path / "deaf").chmod(0o755)
    write_jobs(tmp_path, "./deaf", "./deaf", "./deaf")
    with at_terminal("batch", "jobs.jsonl", "-n", "2", home=tmp_path) as installed:
        while len(processes_with(number)) < 2:
            time.sleep(0.01)
        # No run can end before the second Ctrl-C.
        with block_store_writes(tmp_path / "state/sessionmgr/sessionmgr.db"):
            installed.type("\x03")
            installed.wait_for("press Ctrl-C again")
            installed.type("\x03")
            assert installed.wait() == 130
    assert "stopped at once; to continue: sessionmgr batch jobs.jsonl -n 2" in installed.said
    assert "jobs completed" not in installed.said
    assert_no_process_left(number)
    (tmp_path / "done").touch()
    code, _, err = terminal.bare("batch", "jobs.jsonl")
    assert code == 3, err
    assert "1 of 3 jobs completed, 2 failed" in err
    code, _, err = terminal.bare("batch", "jobs.jsonl", "--retry-from", "fresh")
    assert code == 0, err


def test_a_terminal_that_is_closed_stops_the_batch(tmp_path: Path) -> None:
    number = unique_seconds()
    write_jobs(tmp_path, f"sleep {number}")
    with at_terminal("batch", "jobs.jsonl", home=tmp_path) as terminal:
        terminal.wait_for_screen("1 running")
        while not processes_with(number):
            time.sleep(0.01)
        terminal.hang_up()
        assert terminal.process.wait(60) == 130
    assert_no_process_left(number)
    assert results_in(tmp_path / "runs/jobs") == {"job-1": "cancelled"}


def test_results_go_by_above_the_picture_where_both_are_on_one_terminal(tmp_path: Path) -> None:
    later = "while ! grep -q job-1 runs/jobs/results.jsonl; do sleep 0.02; done"
    write_jobs(tmp_path, "echo one", later, later, options={"shell": True})
    with at_terminal("batch", "jobs.jsonl", "--json", home=tmp_path, columns=2000) as terminal:
        assert terminal.wait() == 0
    shown = [line for line in terminal.screen.lines() if line]
    results = [json.loads(line)["job"] for line in shown if line.startswith("{")]
    assert (results[0], sorted(results)) == ("job-1", ["job-1", "job-2", "job-3"])
    assert not any("running" in line for line in shown)


def test_ctrl_c_while_jobs_are_read_starts_nothing(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "batch", "-"],
        env=environment(tmp_path),
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        while not (tmp_path / "runs").exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130


def test_a_reader_that_goes_away_stops_the_batch(tmp_path: Path) -> None:
    number = unique_seconds()
    later = "until [ -e gone ]; do sleep 0.02; done"
    write_jobs(tmp_path, "echo one", later, f"sleep {number}", options={"shell": True})
    with subprocess.Popen(
        [*COMMAND, "batch", "jobs.jsonl", "--json"],
        env=environment(tmp_path),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        (tmp_path / "gone").touch()
        said = process.stderr.read()
        assert process.wait(60) == 3
    assert "the reader of its output is gone" in said
    assert_no_process_left(number)


def test_the_picture_follows_the_size_of_the_terminal(tmp_path: Path) -> None:
    number = unique_seconds()
    write_jobs(tmp_path, "echo one", *[f"sleep {number}"] * 30)
    with at_terminal("batch", "jobs.jsonl", "-n", "30", home=tmp_path, rows=20) as terminal:
        terminal.wait_for_screen("1 done  30 running")
        terminal.wait_for_screen("… and ")
        terminal.wait_for_screen("bash: sleep 9")
        terminal.resize(40, 12)
        terminal.wait_for_screen("… and 2")
        terminal.resize(120, 60)
        terminal.wait_for_screen("job-31")
        shown = terminal.screen.lines()
        terminal.type("\x03")
        assert terminal.wait() == 130
    jobs = [line.split()[0] for line in shown if line.startswith("  job-")]
    assert jobs[-30:] == [f"job-{n}" for n in range(2, 32)]
    assert_no_process_left(number)


def test_a_terminal_without_escape_sequences_gets_plain_lines(tmp_path: Path) -> None:
    write_jobs(tmp_path, "sleep 0.4", "ls /nope")
    with at_terminal("batch", "jobs.jsonl", home=tmp_path, env={"TERM": "dumb"}) as terminal:
        assert terminal.wait() == 3
    assert "\x1b" not in terminal.said
    assert "1 of 2 jobs completed, 1 failed" in terminal.said
