"""Each wrong input leads to one line that says what is expected, and to exit code 1."""

import json
import logging
import subprocess
from pathlib import Path

import pytest

from sessionmgr.adapter.discovery import installed_adapters
from sessionmgr.cli.verb_table import VERBS
from sessionmgr.cli.verbs import sessions
from sessionmgr.testing.scripted_provider import Say
from tests.cli.command import COMMAND, environment, run_command
from tests.cli.command_terminal import CommandTerminal
from tests.cli.stored_runs import store_runs
from tests.manager.harness import run_scripted

PREFIX = "sessionmgr: error: "

# Arguments, on an existing store without sessions, and the message.
WRONG = {
    # the command
    "sesions": "unknown command 'sesions'; did you mean sessions? (see sessionmgr --help)",
    "nonsense": "unknown command 'nonsense' (see sessionmgr --help)",
    "--jsn": "unknown flag --jsn; did you mean --json? (see sessionmgr --help)",
    "--store": "--store needs a value (see sessionmgr --help)",
    "sessions --store": "sessions: --store needs a value (see sessionmgr sessions --help)",
    "--stor x sessions": "unknown command 'x' (see sessionmgr --help)",
    # acp
    "acp": "--provider: no provider is chosen; add -p PROVIDER (see sessionmgr adapters)",
    "acp -p shel": "unknown provider 'shel'; did you mean 'shell'? known: {providers}",
    "acp -p shell extra": "acp: unexpected argument 'extra' (see sessionmgr acp --help)",
    "acp -p shell --models m1": (
        "--models: shell does not support the choice of a model, got 'm1'; remove it"
    ),
    # sessions
    "sessions extra": "sessions: unexpected argument 'extra' (see sessionmgr sessions --help)",
    "sessions --stats x": (
        "sessions: unknown flag --stats; did you mean --status? (see sessionmgr sessions --help)"
    ),
    "sessions --status faild": (
        "sessions: --status: unknown status 'faild'; did you mean failed? "
        "(see sessionmgr sessions --help)"
    ),
    "sessions --limit 0": (
        "sessions: --limit: expected a whole number, 1 or more, got '0' "
        "(see sessionmgr sessions --help)"
    ),
    "sessions --limit ten": (
        "sessions: --limit: expected a whole number, 1 or more, got 'ten' "
        "(see sessionmgr sessions --help)"
    ),
    "sessions --since yesterday": (
        "--since: invalid time 'yesterday'; use an age (90m, 12h, 7d) or a date (2026-01-31)"
    ),
    "sessions --since 2026-13-01": (
        "--since: invalid time '2026-13-01'; use an age (90m, 12h, 7d) or a date (2026-01-31)"
    ),
    "sessions --json=yes": (
        "sessions: --json: takes no value, got 'yes' (see sessionmgr sessions --help)"
    ),
    # watch, batches, status and questions
    "watch": "watch: missing argument: ID (see sessionmgr watch --help)",
    "watch run_1": "no session or run 'run_1' is stored; sessionmgr sessions lists the known ones",
    "watch core-1": (
        "no session, run or job 'core-1' is stored; sessionmgr sessions lists the known ones"
    ),
    "watch core-1 --batch nowhere": (
        "--batch nowhere: this directory contains no batch; sessionmgr batches lists the known ones"
    ),
    "batches extra": "batches: unexpected argument 'extra' (see sessionmgr batches --help)",
    "batches --limit 0": (
        "batches: --limit: expected a whole number, 1 or more, got '0' "
        "(see sessionmgr batches --help)"
    ),
    "status": "status: no batch found; name its directory: status OUT",
    "status nowhere": (
        "status: nowhere contains no batch; sessionmgr batches lists the known ones"
    ),
    "questions 1": "questions: unexpected argument '1' (see sessionmgr questions --help)",
    # show
    "show": ("show: missing argument: ID (see sessionmgr show --help)"),
    "show run_1": (
        "no session, run or snapshot 'run_1' is stored; sessionmgr sessions lists the known ones"
    ),
    "show ses_1 run_1": "show: unexpected argument 'run_1' (see sessionmgr show --help)",
    "show %": (
        "no session, run, snapshot or job '%' is stored; sessionmgr sessions lists the known ones"
    ),
    # events
    "events": "events: missing argument: ID (see sessionmgr events --help)",
    "events snp_1": "no session or run 'snp_1' is stored; sessionmgr sessions lists the known ones",
    "events x --after -1": (
        "events: --after: expected the number of an event, got '-1' (see sessionmgr events --help)"
    ),
    "events x --after=two": (
        "events: --after: expected the number of an event, got 'two' (see sessionmgr events --help)"
    ),
    "events x --type run_strted": (
        "events: --type: unknown type of event 'run_strted'; did you mean run_started? "
        "(see sessionmgr events --help)"
    ),
    "events x --type zzz": (
        "events: --type: unknown type of event 'zzz'; see sessionmgr schema event "
        "(see sessionmgr events --help)"
    ),
    # export and costs
    "export": "export: missing argument: ID (see sessionmgr export --help)",
    "export ses_1": "no session or run 'ses_1' is stored; sessionmgr sessions lists the known ones",
    "costs ses_1": "no session or run 'ses_1' is stored; sessionmgr sessions lists the known ones",
    "costs --batch runs/a": "costs: --batch runs/a needs the id of a job in that batch",
    "costs --by week": (
        "costs: --by: unknown grouping 'week'; known: session, run, job, batch, "
        "provider, model, day (see sessionmgr costs --help)"
    ),
    # requests
    "cancel": "cancel: missing argument: ID (see sessionmgr cancel --help)",
    "cancel run_1": "no session or run 'run_1' is stored; sessionmgr sessions lists the known ones",
    "cancel run_1 --reson x": (
        "cancel: unknown flag --reson; did you mean --reason? (see sessionmgr cancel --help)"
    ),
    "pause run_1": "no session or run 'run_1' is stored; sessionmgr sessions lists the known ones",
    "resume run_1": (
        "no session, run or snapshot 'run_1' is stored; sessionmgr sessions lists the known ones"
    ),
    "resume run_1 go --clock idel=3": ("--clock: unknown clock 'idel'; did you mean idle?"),
    "resume run_1 go --deadline soon": (
        "--deadline: expected a duration like 900, 15m or 2h, got 'soon'"
    ),
    "resume run_1 go --permission full": (
        "--permission-mode: unknown permission mode 'full'; did you mean full_auto?"
    ),
    "append run_1": ("append: missing argument: TEXT (see sessionmgr append --help)"),
    "append run_1 x": (
        "no session or run 'run_1' is stored; sessionmgr sessions lists the known ones"
    ),
    "approve run_1": (
        "approve: allow|deny: unknown answer 'run_1'; known: allow, deny "
        "(see sessionmgr approve --help)"
    ),
    "approve run_1 alow": (
        "approve: allow|deny: unknown answer 'alow'; did you mean allow? "
        "(see sessionmgr approve --help)"
    ),
    "approve allow": "approve: no question is open",
    "approve 7 allow": (
        "approve: no question has the number 7; sessionmgr questions lists the open ones"
    ),
    "approve apr_1 allow": "no open question 'apr_1' is stored",
    # installation
    "adapters shel": "unknown provider 'shel'; did you mean 'shell'? known: {providers}",
    "doctor shel": "doctor: unknown check 'shel'; did you mean shell?",
    "schema": "schema: missing argument: WHAT (see sessionmgr schema --help)",
    "schema events": (
        "schema: WHAT: unknown schema 'events'; did you mean event? (see sessionmgr schema --help)"
    ),
    "schema options": "schema: options needs a provider: sessionmgr schema options PROVIDER",
    "schema output nobody": "unknown provider 'nobody'; known: {providers}",
    "schema job shell": "schema: job takes no provider, but got 'shell'",
    "prune --before then": (
        "--before: invalid time 'then'; use an age (90m, 12h, 7d) or a date (2026-01-31)"
    ),
    "prune --session ses_1": (
        "no session 'ses_1' is stored; sessionmgr sessions lists the known ones"
    ),
    "completion": ("completion: missing argument: SHELL (see sessionmgr completion --help)"),
    "completion tcsh": (
        "completion: SHELL: unknown shell 'tcsh'; known: bash, zsh, fish "
        "(see sessionmgr completion --help)"
    ),
    "demo x": "demo: unexpected argument 'x' (see sessionmgr demo --help)",
    # run
    "run hello": "--provider: no provider is chosen; add -p PROVIDER (see sessionmgr adapters)",
    "run hello -p shel": ("unknown provider 'shel'; did you mean 'shell'? known: {providers}"),
    "run hello -p shell --permission plan": (
        "shell does not support permission_mode plan; "
        "it supports: default, full_auto, dangerously_skip_permissions"
    ),
    "run hello -p shell --model big": (
        "shell does not support model_choice; "
        "remove it, or make it optional (--prefer model_choice)"
    ),
    "run hello -p shell --system-prompt x": (
        "shell does not support system_prompt; "
        "remove it, or make it optional (--prefer system_prompt)"
    ),
    "run hello -p shell --option shel=true": (
        "options.shell: unknown option 'shel'; did you mean 'shell'?"
    ),
    "run hello -p shell --cwd /nowhere": "--cwd: no such directory: /nowhere",
    "run hello -p shell --budget-usd 0": "--budget-usd: expected dollars, more than 0, got 0",
    "run hello -p shell --max-turns many": (
        "--max-turns: expected a whole number, 1 or more, got 'many'"
    ),
    "run hello -p shell --image nowhere.png": "--image: no such file: {home}/nowhere.png",
    "run hello --resume run_1": (
        "no session, run or snapshot 'run_1' is stored; sessionmgr sessions lists the known ones"
    ),
    "resume core-1 hello": (
        "no session, run, snapshot or job 'core-1' is stored; "
        "sessionmgr sessions lists the known ones"
    ),
    "cancel core-1": (
        "no session, run or job 'core-1' is stored; sessionmgr sessions lists the known ones"
    ),
    "show core-1 --batch nowhere": (
        "--batch nowhere: this directory contains no batch; sessionmgr batches lists the known ones"
    ),
    # batch
    "batch": "batch: missing argument: JOBS (see sessionmgr batch --help)",
    "batch nowhere.jsonl": "nowhere.jsonl: no such file; give a file with one JSON object per line",
    "batch jobs.jsonl more": "batch: unexpected argument 'more' (see sessionmgr batch --help)",
    "batch jobs.jsonl --dry-rn": (
        "batch: unknown flag --dry-rn; did you mean --dry-run? (see sessionmgr batch --help)"
    ),
    "batch jobs.jsonl --out=": (
        "batch: --out: expected a directory, got '' (see sessionmgr batch --help)"
    ),
    "batch jobs.jsonl -n 0": "--concurrency: expected a whole number, 1 or more, got 0",
    "batch jobs.jsonl -n shell=x": (
        "--concurrency: shell: expected a whole number, 1 or more, got 'x'"
    ),
    "batch jobs.jsonl --retries -1": "--retries: expected a whole number, 0 or more, got -1",
    "batch jobs.jsonl --retry-on overlod": (
        "--retry-on: unknown kind of failure 'overlod'; did you mean overloaded?"
    ),
    "batch jobs.jsonl --max-failures x": (
        "--max-failures: expected a whole number, 1 or more, got 'x'"
    ),
    "batch jobs.jsonl --approve nowhere.toml": "--approve: nowhere.toml: No such file or directory",
    "batch field.jsonl": ("field.jsonl:2: promt: unknown field; did you mean 'prompt'?"),
    "batch twice.jsonl": "twice.jsonl:2: id: 'a' is already used at twice.jsonl:1",
    "batch provider.jsonl": (
        "provider.jsonl:1: provider: unknown provider 'shel'; did you mean 'shell'? "
        "known: {providers}"
    ),
    "batch cwd.jsonl": "cwd.jsonl:1: cwd: no such directory: /nowhere",
    "batch mode.jsonl": (
        "mode.jsonl:1: permission_mode: shell does not support permission_mode plan; "
        "it supports: default, full_auto, dangerously_skip_permissions"
    ),
    "batch require.jsonl": (
        "require.jsonl:1: require: shell does not support mcp; "
        "remove it, or make it optional (--prefer mcp)"
    ),
    "trust": "trust: name one directory, or use --list, or --revoke DIR",
    # model
    "model --port 65536": (
        "model: --port: expected a port from 0 to 65535, got '65536' (see sessionmgr model --help)"
    ),
    "model --agent gemni": (
        "model: --agent: unknown agent 'gemni'; did you mean gemini? (see sessionmgr model --help)"
    ),
    "model --script nowhere.json": "--script: nowhere.json: No such file or directory",
    "model --script field.jsonl": (
        "--script: field.jsonl: not a script: Expected `array`, got `object`; "
        'write [[{{"do": "say", "text": "hi"}}]], a list of replies, each a list of moves'
    ),
    # rehearse
    "rehearse": ("rehearse: missing argument: JOBS (see sessionmgr rehearse --help)"),
    "rehearse nowhere.jsonl": (
        "nowhere.jsonl: no such file; give a file with one JSON object per line"
    ),
    "rehearse x --limit two": (
        "rehearse: --limit: expected a number, 1 or more, got 'two'"
        " (see sessionmgr rehearse --help)"
    ),
    "rehearse x --option a=b": "--option: no provider is chosen; add -p PROVIDER, or use --set "
    "PROVIDER.options.NAME=VALUE",
}


JOB: dict[str, object] = {"id": "a", "prompt": "echo x", "provider": "shell"}
JOBS: dict[str, list[dict[str, object]]] = {
    "jobs": [JOB],
    "field": [JOB, {"id": "b", "promt": "echo x", "provider": "shell"}],
    "twice": [JOB, JOB],
    "provider": [{**JOB, "provider": "shel"}],
    "cwd": [{**JOB, "cwd": "/nowhere"}],
    "mode": [{**JOB, "permission_mode": "plan"}],
    "require": [{**JOB, "require": ["mcp"]}],
}


@pytest.fixture(autouse=True)
def _jobs(terminal: CommandTerminal) -> None:
    for name, jobs in JOBS.items():
        lines = [json.dumps(job) for job in jobs]
        (terminal.home / f"{name}.jsonl").write_text("\n".join(lines))


def typed(terminal: CommandTerminal, words: list[str]) -> tuple[int, str, str]:
    """Run the command, on the existing store unless the case is about the store."""
    return terminal(*words) if "--store" not in words else terminal.bare(*words)


@pytest.mark.parametrize("line", WRONG)
def test_what_is_typed_wrongly_is_answered_in_one_line(
    terminal: CommandTerminal, line: str
) -> None:
    store_runs(terminal.store)
    said = WRONG[line].format(providers=", ".join(installed_adapters()), home=terminal.home)
    assert typed(terminal, line.split()) == (1, "", PREFIX + said)


def test_there_are_many_of_them_and_of_every_command() -> None:
    assert len(WRONG) >= 40
    assert {line.split()[0] for line in WRONG} >= VERBS.keys()


STORES = {
    "not there": "no store at {store} (set by --store); check the path",
    "a directory": "{store} cannot hold a store (it is a directory); choose a file in a "
    "directory that exists (--store PATH)",
    "a text": "{store} is not a session store (file is not a database); it was not changed; "
    "choose another file (--store PATH)",
    "short": "{store} is not a session store (it is too short); it was not changed; "
    "choose another file (--store PATH)",
}


@pytest.mark.parametrize("what", STORES)
@pytest.mark.parametrize("verb", ["sessions", "show x", "cancel x", "resume x", "prune"])
def test_a_store_that_is_none_is_reported(terminal: CommandTerminal, what: str, verb: str) -> None:
    match what:
        case "a directory":
            terminal.store.mkdir()
        case "a text":
            terminal.store.write_text("hello, this is not a database\n" * 99)
        case "short":
            terminal.store.write_text("hello")
        case _:
            pass
    code, out, err = terminal(*verb.split())
    assert (code, out, err) == (1, "", PREFIX + STORES[what].format(store=terminal.store))


def test_nothing_to_append_is_refused(terminal: CommandTerminal) -> None:
    expected = f"{PREFIX}append: TEXT is empty; write the message"
    assert terminal("append", "x", " ") == (1, "", expected)


def test_an_ambiguous_id_names_them(terminal: CommandTerminal) -> None:
    one, other = sorted(
        result.session_id
        for result in store_runs(terminal.store, *[run_scripted(Say(text="x"))] * 2)
    )
    for words in (["show"], ["events"], ["export"], ["costs"], ["cancel"], ["pause"], ["resume"]):
        code, out, err = terminal(*words, "ses_")
        assert (code, out) == (1, "")
        first, *candidates = err.splitlines()
        assert first == f"{PREFIX}several ids begin with 'ses_'; type more of the id:"
        assert [line.removeprefix(PREFIX).split(":")[0] for line in candidates] == [one, other]


def test_a_log_file_that_cannot_be_is_reported(terminal: CommandTerminal) -> None:
    path = terminal.home / "nowhere" / "log"
    expected = f"{PREFIX}--log-file: {path}: No such file or directory"
    handlers = list(logging.getLogger("sessionmgr").handlers)
    assert terminal("sessions", "--log-file", str(path)) == (1, "", expected)
    assert logging.getLogger("sessionmgr").handlers == handlers


@pytest.mark.parametrize("line", ["nonsense", "show run_1", "sessions --limit ten"])
def test_the_installed_command_says_the_same(tmp_path: Path, line: str) -> None:
    store = tmp_path / "runs.db"
    store_runs(store)
    ran = run_command(*line.split(), "--store", str(store), cwd=tmp_path, env=environment(tmp_path))
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, "", f"{PREFIX}{WRONG[line]}\n")


def test_a_bug_of_ours_is_one_line_and_its_traceback_is_kept(
    terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(args: object) -> int:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(sessions, "run", broken)
    code, out, err = terminal("sessions")
    assert (code, out) == (1, "")
    assert err.startswith(f"{PREFIX}this is a bug in sessionmgr: ZeroDivisionError: a bug; ")
    assert err.count("\n") == 0
    (kept,) = (terminal.home / "state" / "sessionmgr").glob("crash-*.txt")
    assert str(kept) in err
    assert "Traceback" in kept.read_text()
    assert kept.stat().st_mode & 0o777 == 0o600
    code, _, err = terminal("sessions", "-v")
    assert code == 1
    assert "Traceback" in err


def test_a_bug_with_nowhere_to_keep_its_traceback_is_reported_too(
    terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(args: object) -> int:
        raise BaseExceptionGroup("several", [ZeroDivisionError("a bug"), ValueError("another")])

    monkeypatch.setattr(sessions, "run", broken)
    (terminal.home / "state").write_text("in the way")
    code, _, err = terminal("sessions")
    assert code == 1
    assert "could not be stored" in err
    assert json.dumps(err).count("Traceback") == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("line", ["--help", "--version", "batch --help", "schema event"])
def test_what_cannot_be_printed_is_reported_in_one_line(tmp_path: Path, line: str) -> None:
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(
            [*COMMAND, *line.split()],
            stdout=full,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env=environment(tmp_path),
            check=False,
            timeout=60,
        )
    assert ran.returncode == 1
    assert ran.stderr == "sessionmgr: error: stdout: No space left on device\n"
