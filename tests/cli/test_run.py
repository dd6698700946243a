"""The verb `run`: stdout, stderr and exit codes; the installed command: questions."""

import json
from pathlib import Path

import pytest

from tests.cli.command import run_command
from tests.cli.command_terminal import CommandTerminal
from tests.cli.pseudo_terminal import at_terminal


def ask(tool: str, **more: object) -> dict[str, object]:
    return {"do": "ask", "tool": tool, **more}


def test_the_agents_text_is_on_stdout_and_all_else_on_stderr(env: dict[str, str]) -> None:
    ran = run_command("run", "-p", "shell", "echo hi", env=env)
    assert (ran.returncode, ran.stdout) == (0, "hi\n")
    assert "· bash: echo hi" in ran.stderr
    assert "completed" in ran.stderr


def test_quiet_says_nothing_beside_the_text(prompt: CommandTerminal) -> None:
    assert prompt.bare("run", "-q", "-p", "shell", "echo hi") == (0, "hi", "")


def test_messages_follow_each_other_line_by_line_and_appear_once(prompt: CommandTerminal) -> None:
    script = json.dumps(
        [
            {"do": "say", "text": "Let me look.", "deltas": 4},
            {"do": "tool", "name": "Bash", "input": {"command": "npm test"}, "fails": True},
            {"do": "say", "text": "Done."},
        ]
    )
    _, out, err = prompt.bare("run", "-p", "scripted", script)
    assert out == "Let me look.\nDone."
    assert "· Bash: npm test" in err
    assert "✗ Bash failed" in err


def test_json_prints_the_events_from_run_started_to_the_end(prompt: CommandTerminal) -> None:
    _, out, err = prompt.bare("run", "--json", "-p", "shell", "echo hi")
    events = [json.loads(line) for line in out.splitlines()]
    assert events[0]["type"] == "run_started"
    assert events[-1]["type"] == "run_completed"
    numbers = [event["seq"] for event in events]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert err == ""


def test_json_of_a_run_that_never_started_ends_with_its_end(prompt: CommandTerminal) -> None:
    script = json.dumps({"starts": False, "steps": [{"do": "error"}, {"do": "fail"}]})
    code, out, _ = prompt.bare("run", "--json", "-p", "scripted", script)
    types = [json.loads(line)["type"] for line in out.splitlines()]
    assert types[-1] == "run_failed"
    assert "message_sent" not in types
    assert code == 3


@pytest.mark.parametrize(
    ("steps", "code", "said"),
    [
        ([{"do": "finish"}], 0, "completed"),
        ([{"do": "fail", "message": "no luck"}], 3, "failed: provider_error: no luck"),
        ([{"do": "rate_limited"}], 3, "rate limited"),
        ([{"do": "crash"}], 3, "failed: adapter_crashed"),
    ],
)
def test_the_exit_code_tells_how_it_ended(
    steps: list[dict[str, object]], code: int, said: str, prompt: CommandTerminal
) -> None:
    ended, _, err = prompt.bare("run", "-p", "scripted", json.dumps(steps))
    assert ended == code
    assert said in err
    assert "Traceback" not in err


def test_a_deadline_ends_it(prompt: CommandTerminal) -> None:
    hang = '[{"do": "hang"}]'
    code, _, err = prompt.bare("run", "-p", "scripted", "--deadline", "0.2", hang)
    assert code == 3
    assert "timed out" in err


def test_a_prompt_may_come_from_stdin_or_from_a_file(
    env: dict[str, str], prompt: CommandTerminal
) -> None:
    assert run_command("run", "-p", "scripted", "-", env=env, stdin="Hello\n").stdout == "Hello\n"
    (prompt.home / "prompt.txt").write_text("Good evening")
    _, out, _ = prompt.bare("run", "-p", "scripted", "--prompt-file", "prompt.txt")
    assert out == "Good evening"


def test_options_and_variables_reach_the_agent(prompt: CommandTerminal, tmp_path: Path) -> None:
    (tmp_path / "vars").write_text("# mine\nexport WORD='in a file'\nOTHER=x=y\n")
    _, out, _ = prompt.bare(
        *["run", "-q", "-p", "shell", "--option", "shell=true", "--env", "MINE=a flag"],
        *["--env-file", str(tmp_path / "vars"), "echo $MINE, $WORD, $OTHER"],
    )
    assert out == "a flag, in a file, x=y"


def test_a_question_without_a_terminal_is_denied_and_reported(prompt: CommandTerminal) -> None:
    script = json.dumps([ask("Bash", input={"command": "rm -rf build"})])
    _, _, err = prompt.bare("run", "-p", "scripted", script)
    assert "✗ denied: Bash: rm -rf build (no approver is configured)" in err


def test_rules_of_the_settings_answer_where_there_is_no_terminal(
    prompt: CommandTerminal, tmp_path: Path
) -> None:
    (tmp_path / "sessionmgr.toml").write_text('approve = "rules.toml"\n')
    (tmp_path / "rules.toml").write_text('[[rule]]\ntool = "Read"\ndecision = "allow"\n')
    assert prompt.bare("trust", ".")[0] == 0
    script = json.dumps([ask("Read"), ask("Bash", input={"command": "id"})])
    _, _, err = prompt.bare("run", "-p", "scripted", script)
    assert "✓ allowed: Read (by rules)" in err
    assert "✗ denied: Bash: id (no rule allows it)" in err


@pytest.mark.parametrize(
    ("answers", "allowed", "code"),
    [
        (["y", "n"], 1, 0),
        (["what?", "yes", "y"], 2, 0),
        (["a"], 2, 0),
        (["s"], 0, 3),
        (["\x04"], 0, 0),
    ],
)
def test_a_question_is_asked_on_the_terminal(
    answers: list[str], allowed: int, code: int, env: dict[str, str], tmp_path: Path
) -> None:
    first = ask("Bash", input={"command": "npm install"}, output="one", reason="to build")
    # A stopped agent could ask once more before it reacts to the stop; this one does not.
    then = {"do": "hang"} if answers == ["s"] else ask("Bash", input={"command": "npm test"})
    script = json.dumps([first, then])
    with at_terminal("run", "-p", "scripted", script, home=tmp_path, env=env) as terminal:
        for n, answer in enumerate(answers, 1):
            terminal.wait_for("[y]es, [n]o, [a]lways this tool, [s]top the run? ", count=n)
            terminal.type(answer if answer == "\x04" else f"{answer}\n")
        if answers == ["\x04"]:
            terminal.wait_for("[y]es", count=2)
            terminal.type("\x04")
        assert terminal.wait() == code
    assert "scripted asks to use Bash" in terminal.said
    assert "command: npm install" in terminal.said
    assert "because: to build" in terminal.said
    assert "denied without an answer within 2 min 00 s (at " in terminal.said
    asked = 2 - (answers == ["s"])
    assert terminal.said.count("✗ denied: Bash: npm") == asked - allowed


def test_a_question_without_an_answer_is_denied_at_its_deadline(
    env: dict[str, str], tmp_path: Path
) -> None:
    script = json.dumps([ask("Bash", input="x")])
    with at_terminal(
        *["run", "-p", "scripted", "--clock", "approval=6", script],
        home=tmp_path,
        env=env,
    ) as terminal:
        assert terminal.wait() == 0
    assert "asks to use Bash" in terminal.said
    assert "(the request has ended)" in terminal.said
    assert "✗ denied: Bash: x (no answer within 6 s)" in terminal.said


def test_nothing_of_what_an_agent_says_moves_the_terminal(
    env: dict[str, str], tmp_path: Path
) -> None:
    hostile = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x9b5n\rover"
    printed = {"type": "output_received", "stream": "stderr", "text": hostile}
    script = json.dumps(
        [
            {"do": "say", "text": hostile, "deltas": 5},
            {"do": "tool", "name": f"B{hostile}", "input": {"command": hostile}},
            {"do": "error", "message": hostile},
            {
                "do": "emit",
                "event": printed,
            },
            {"do": "fail", "message": hostile},
        ]
    )
    with at_terminal("run", "-p", "scripted", script, home=tmp_path, env=env) as terminal:
        assert terminal.wait() == 3  # the terminal emulator has accepted all of the output
    assert "owned" not in terminal.said
    assert "red" in terminal.said


def test_a_run_goes_on_in_the_session_of_another(prompt: CommandTerminal) -> None:
    _, out, _ = prompt.bare("run", "--json", "-p", "scripted", "One")
    event = json.loads(out.splitlines()[0])
    for id in (event["session_id"], event["run_id"][:12]):
        code, out, err = prompt.bare("run", "--json", "--resume", id, "Two")
        assert code == 0, err
        started = json.loads(out.splitlines()[0])
        assert started["session_id"] == event["session_id"]
        assert started["provider_session_id"] == event["provider_session_id"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "PROMPT is missing"),
        (["-p", "shell"], "PROMPT is missing"),
        (["hello"], "--provider: no provider is chosen"),
        (["-p", "shel", "x"], "unknown provider 'shel'; did you mean 'shell'?"),
        (["-p", "shell", " "], "PROMPT is empty"),
        (["-p", "shell", "echo a\udcff"], "PROMPT is not UTF-8 text"),
        (["-p", "shell", "--env", "A=\udcff", "x"], "--env: A is not UTF-8 text"),
        (["-p", "shell", "x", "--prompt-file", "y"], "PROMPT and --prompt-file: give only one"),
        (["-p", "shell", "--prompt-file", "nope"], "--prompt-file: nope: No such file"),
        (["-p", "shell", "--env", "sEcret", "x"], "--env: expected NAME=VALUE"),
        (["-p", "shell", "--env-file", "nope", "x"], "--env-file: nope: No such file"),
        (["-p", "shell", "--option", "x", "y"], "--option: expected NAME=VALUE, got 'x'"),
        (["-p", "shell", "--option", "tmeout=3", "y"], "tmeout"),
        (["-p", "shell", "--option", "timeout=soon", "y"], "timeout"),
        (["-p", "shell", "--schema", "nope", "y"], "--schema: nope: No such file"),
        (["-p", "shell", "--image", "nope.png", "y"], "--image: no such file"),
        (["-p", "shell", "--cwd", "nope", "y"], "nope"),
        (["-p", "shell", "--permission", "plan", "y"], "plan"),
        (["-p", "shell", "--permission", "plann", "y"], "plann"),
        (["-p", "shell", "--max-turns", "3", "y"], "max_turns"),
        (["-p", "shell", "--max-turns", "none", "y"], "--max-turns"),
        (["-p", "shell", "--effort", "high", "y"], "effort"),
        (["-p", "shell", "--budget-usd", "1", "y"], "budget_usd (1.0, from --budget-usd)"),
        (["-p", "shell", "--tools-denied", "Bash", "y"], "tools_denied"),
        (["-p", "shell", "--clock", "idel=3", "y"], "idel"),
        (["-p", "shell", "--deadline", "-1", "y"], "--deadline"),
        (["-p", "shell", "--system-prompt", "x", "y"], "system_prompt"),
        (["--resume", "run_nothing", "y"], "no store at"),
        (["--resume", "x", "--cwd", ".", "y"], "--cwd: a continued session stays"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_1(
    args: list[str], said: str, terminal: CommandTerminal
) -> None:
    code, out, err = terminal("run", *args)
    assert (code, out) == (1, "")
    assert err.startswith("sessionmgr: error: ")
    assert "\n" not in err
    assert said in err
    assert "sEcret" not in err


def test_a_run_whose_program_cannot_be_started_is_a_start_up_error(
    env: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "plain").write_text("no program")
    ran = run_command("run", "--cwd", str(tmp_path), "-p", "shell", "./plain", env=env)
    assert ran.returncode == 1
    assert "start_failed" in ran.stderr
    assert "plain" in ran.stderr
    assert "Traceback" not in ran.stderr
