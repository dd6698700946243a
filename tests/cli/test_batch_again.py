"""`batch`, repeated: finished jobs stay finished; empty or foreign directories are refused."""

import json
from pathlib import Path

from tests.cli.command_terminal import CommandTerminal

SHELL = ("-p", "shell", "--permission", "full_auto")


def write_jobs(file: Path, prompts: dict[str, str]) -> str:
    file.parent.mkdir(exist_ok=True)
    lines = [json.dumps({"id": id, "prompt": prompt}) for id, prompt in prompts.items()]
    file.write_text("".join(f"{line}\n" for line in lines))
    return str(file)


def lines_in(out: Path) -> dict[str, bytes]:
    lines = (out / "results.jsonl").read_bytes().splitlines()
    return {json.loads(line)["job"]: line for line in lines}


def test_a_raised_deadline_runs_only_what_it_had_ended(terminal: CommandTerminal) -> None:
    out = terminal.home / "out"
    waits = "sh -c 'until [ -e go ]; do sleep 0.02; done'"
    file = write_jobs(terminal.home / "jobs.jsonl", {"a": "echo 1", "slow": waits, "b": "echo"})
    words = ("batch", file, *SHELL, "-n1", "-o", str(out))
    code, _, err = terminal.bare(*words, "--deadline", "120", "--skip", "slow")
    assert (code, "2 of 3 jobs completed" in err) == (0, True)
    code, _, err = terminal.bare(*words, "--deadline", "1")
    assert (code, "2 of 3 jobs completed, 1 timed out" in err) == (3, True)
    before = lines_in(out)
    (terminal.home / "go").touch()
    code, _, err = terminal.bare(*words, "--deadline", "130", "--only", "slow")
    assert (code, "3 of 3 jobs completed" in err) == (0, True)
    after = lines_in(out)
    assert {id for id in before if before[id] != after[id]} == {"slow"}
    code, _, err = terminal.bare(*words, "--deadline", "140")
    assert (code, "3 of 3 jobs completed" in err) == (0, True)
    assert lines_in(out) == after


def test_other_work_of_a_finished_job_names_the_way_out_which_touches_no_other(
    terminal: CommandTerminal,
) -> None:
    file, out = terminal.home / "jobs.jsonl", terminal.home / "out"
    words = ("batch", write_jobs(file, {"a": "echo 1", "b": "echo 2"}), *SHELL, "-o", str(out))
    assert terminal.bare(*words, "-q", "-n1")[0] == 0
    before = lines_in(out)
    write_jobs(file, {"a": "echo one", "b": "echo two"})
    code, _, err = terminal.bare(*words)
    assert code == 1
    assert 'job \'a\' has changed since it was run (prompt was "echo 1" and is "echo one")' in err
    assert "(--force --only a)" in err
    code, _, err = terminal.bare(*words, "--force", "--only", "a")
    assert (code, "2 of 2 jobs completed" in err) == (0, True)
    after = lines_in(out)
    assert (json.loads(after["a"])["text"], after["b"]) == ("one\n", before["b"])


def test_two_files_of_one_name_do_not_share_a_directory(terminal: CommandTerminal) -> None:
    one = write_jobs(terminal.home / "one" / "jobs.jsonl", {"a": "echo 1"})
    other = write_jobs(terminal.home / "other" / "jobs.jsonl", {"b": "echo 2"})
    assert terminal.bare("batch", one, *SHELL, "-q")[0] == 0
    code, _, err = terminal.bare("batch", other, *SHELL)
    assert code == 1
    assert f"runs/jobs already holds the batch of {one}. Use --out DIR to keep them apart" in err
    assert terminal.bare("batch", other, *SHELL, "-q", "-o", str(terminal.home / "out"))[0] == 0


def test_a_batch_of_nothing_is_no_success(terminal: CommandTerminal) -> None:
    empty = write_jobs(terminal.home / "empty.jsonl", {})
    code, _, err = terminal.bare("batch", empty, *SHELL)
    assert (code, "empty.jsonl: contains no jobs" in err) == (1, True)
    file = write_jobs(terminal.home / "jobs.jsonl", {"a": "echo 1"})
    code, _, err = terminal.bare("batch", file, *SHELL, "--only", "zzz")
    assert (code, "--only 'zzz' selects none of 1 job; ids: 'a'" in err) == (1, True)
