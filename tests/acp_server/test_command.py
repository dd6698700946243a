"""The command `sessionmgr acp` as a process: its streams, its end, and its mistakes."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, TypeAlias

import pytest

from tests.cli.command import COMMAND, environment, run_command
from tests.cli.scripted_agent import install_scripted_agent


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """The environment of a command for which the scripted provider is installed."""
    made = environment(tmp_path)
    path = install_scripted_agent(tmp_path / "agents")
    made["PYTHONPATH"] = os.pathsep.join([path, made["PYTHONPATH"]])
    return made


def lines(*messages: dict[str, Any]) -> str:
    return "".join(json.dumps({"jsonrpc": "2.0", **each}) + "\n" for each in messages)


INITIALIZE = {"id": 1, "method": "initialize", "params": {"protocolVersion": 1}}


def new(cwd: Path) -> dict[str, Any]:
    return {"id": 2, "method": "session/new", "params": {"cwd": str(cwd), "mcpServers": []}}


def prompt(session: str, text: str) -> dict[str, Any]:
    blocks = [{"type": "text", "text": text}]
    params = {"sessionId": session, "prompt": blocks}
    return {"id": 3, "method": "session/prompt", "params": params}


class AgentCommand:
    """The command as a child, and its client's side of the streams."""

    def __init__(self, provider: str, env: dict[str, str], cwd: Path, *flags: str) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, "acp", "-p", provider, *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env=env,
            cwd=cwd,
        )

    @property
    def stdin(self) -> IO[str]:
        assert self.process.stdin is not None
        return self.process.stdin

    def send(self, *messages: dict[str, Any]) -> None:
        self.stdin.write(lines(*messages))
        self.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def answer(self, id_: int) -> dict[str, Any]:
        while (message := self.receive()).get("id") != id_:
            pass
        return message

    def session(self, cwd: Path) -> str:
        self.send(INITIALIZE)
        self.answer(1)
        self.send(new(cwd))
        session: str = self.answer(2)["result"]["sessionId"]
        return session

    def wait_for_text(self, text: str) -> None:
        while text not in json.dumps(self.receive()):
            pass


Start: TypeAlias = Callable[..., AgentCommand]


@pytest.fixture
def start(tmp_path: Path, env: dict[str, str]) -> Iterator[Start]:
    """Start the command in the directory of the test; its end is that of the test."""
    started: list[AgentCommand] = []

    def begin(provider: str, *flags: str) -> AgentCommand:
        started.append(AgentCommand(provider, env, tmp_path, *flags))
        return started[-1]

    yield begin
    for agent in started:
        with agent.process as process:
            if process.poll() is None:
                process.kill()


def test_the_shell_is_served(tmp_path: Path, start: Start) -> None:
    agent = start("shell", "--permission", "full_auto")
    session = agent.session(tmp_path)
    agent.send(prompt(session, "printf hello"))
    answer = agent.answer(3)
    assert answer["result"]["stopReason"] == "end_turn"
    out, err = agent.process.communicate(timeout=60)
    assert (out, err, agent.process.returncode) == ("", "", 0)


def test_the_requests_before_the_end_of_the_input_are_answered(
    tmp_path: Path, env: dict[str, str]
) -> None:
    done = run_command("acp", "-p", "shell", env=env, cwd=tmp_path, stdin=lines(INITIALIZE))
    assert json.loads(done.stdout)["result"]["protocolVersion"] == 1
    assert (done.stderr, done.returncode) == ("", 0)


def is_alive(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


@pytest.mark.parametrize("number", [None, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_nothing_outlives_the_server(
    tmp_path: Path, start: Start, number: signal.Signals | None
) -> None:
    agent = start("shell", "--permission", "full_auto", "--option", "shell=true")
    session = agent.session(tmp_path)
    agent.send(prompt(session, "sleep 1000 & echo pid:$!; wait"))
    while not (found := re.search(r"pid:(\d+)", json.dumps(agent.receive()))):
        pass
    pid = int(found[1])
    assert is_alive(pid)
    if number is None:
        agent.stdin.close()
    else:
        agent.process.send_signal(number)
    answer = agent.answer(3)
    assert answer["result"]["stopReason"] == "cancelled"
    agent.process.wait(60)
    assert agent.process.returncode == (0 if number is None else 130)
    assert not is_alive(pid)
    assert agent.process.stdout is not None
    assert agent.process.stdout.read() == ""


def test_a_client_that_reads_no_more_ends_the_server(tmp_path: Path, start: Start) -> None:
    agent = start("scripted")
    session = agent.session(tmp_path)
    assert agent.process.stdout is not None
    agent.process.stdout.close()
    agent.send(prompt(session, '[{"do": "say", "text": "a"}, {"do": "hang"}]'))
    agent.process.wait(60)
    assert agent.process.returncode == 0
    with suppress(BrokenPipeError):
        agent.stdin.close()
    assert agent.process.stderr is not None
    assert agent.process.stderr.read() == ""
    agent.process.stderr.close()


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ((), "no provider is chosen; add -p PROVIDER"),
        (("-p", "shel"), "unknown provider 'shel'; did you mean 'shell'?"),
        (("-p", "shell", "--permission", "plan"), "shell does not support permission_mode plan"),
        (("-p", "shell", "--option", "nothing=1"), "options.shell: "),
        (("-p", "shell", "--models", "m1"), "--models: shell does not support the choice"),
        (("-p", "shell", "--cwd", "/nowhere/at/all"), "--cwd: no such directory"),
    ],
)
def test_a_mistake_is_one_line_before_the_first_message(
    tmp_path: Path, env: dict[str, str], flags: tuple[str, ...], why: str
) -> None:
    done = run_command("acp", *flags, env=env, cwd=tmp_path, stdin=lines(INITIALIZE))
    assert done.returncode == 1
    assert done.stdout == ""
    assert why in done.stderr
    assert "Traceback" not in done.stderr


def test_the_log_does_not_reach_the_client(tmp_path: Path, start: Start) -> None:
    agent = start("scripted", "-v")
    session = agent.session(tmp_path)
    agent.send(prompt(session, '[{"do": "crash"}]'))
    answer = agent.answer(3)
    assert answer["error"]["data"]["kind"] == "adapter_crashed"
    out, err = agent.process.communicate(timeout=60)
    assert out == ""
    assert "sessionmgr: " in err
