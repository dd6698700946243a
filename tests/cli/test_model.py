"""The verb `model`: the server's addresses, the agents' variables, requests, its end."""

import json
import shlex
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sessionmgr.cli.verbs.model import AGENTS
from tests.cli.command import COMMAND, environment

SCRIPT = '[[{"do": "say", "text": "first"}], [{"do": "say", "text": "second"}]]'


@contextmanager
def serving(home: Path, *words: str) -> Generator[subprocess.Popen[str]]:
    """Run the command; after the block, end it by SIGINT."""
    with subprocess.Popen(
        [*COMMAND, "model", *words],
        env=environment(home, TMPDIR=str(home)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as server:
        try:
            yield server
        finally:
            server.send_signal(signal.SIGINT)
            assert server.wait(60) == 130


def read_line(server: subprocess.Popen[str]) -> str:
    assert server.stdout is not None
    return server.stdout.readline().rstrip("\n")


def ask(base: str, *messages: tuple[str, str]) -> str:
    """Send a Chat Completions request, and return the text of the answer."""
    said = [{"role": role, "content": text} for role, text in messages]
    body = json.dumps({"model": "any", "messages": said}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{base}/chat/completions", body)) as answer:
        found: dict[str, Any] = json.load(answer)
    return str(found["choices"][0]["message"]["content"])


def test_it_serves_until_ctrl_c_and_prints_the_requests(tmp_path: Path) -> None:
    file = tmp_path / "script.json"
    file.write_text(SCRIPT)
    with serving(tmp_path, "--json", "--script", str(file)) as server:
        printed = json.loads(read_line(server))
        chat = printed["apis"]["chat"]
        assert ask(chat, ("user", "hi")) == "first"
        again = ("user", "hi"), ("assistant", "first"), ("user", "go on")
        assert ask(chat, *again) == "first"  # each prompt plays it from the beginning
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"{printed['url']}/nowhere")
        assert server.stderr is not None
        asked = [server.stderr.readline().rstrip("\n") for _ in range(3)]
        assert sorted(printed["agents"]) == sorted(AGENTS)
        assert list(tmp_path.glob("sessionmgr-model-*"))
    line = "sessionmgr: POST /v1/chat/completions 200 turn, reply 0"
    assert asked == [line, line, "sessionmgr: GET /nowhere 404 unknown target"]
    assert list(tmp_path.glob("sessionmgr-model-*")) == []


def test_the_addresses_and_the_variables_of_all_agents_are_printed(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        lines = [read_line(server) for _ in range(5 + len(AGENTS))]
    url = lines[0].split()[-1]
    assert [line.split()[-1].removeprefix(url) for line in lines[:4]] == ["", "/v1", "/v1", ""]
    agents = {line.split()[0]: shlex.split(line)[1:] for line in lines[5:]}
    assert list(agents) == list(AGENTS)
    assert f"ANTHROPIC_BASE_URL={url}" in agents["claude"]
    assert not any(each.startswith("HOME=") for words in agents.values() for each in words)


def test_the_environment_of_an_agent_can_be_read_by_a_shell(tmp_path: Path) -> None:
    homes = tmp_path / "a place"
    with serving(tmp_path, "--agent", "kimi-cli", "--directory", str(homes)) as server:
        lines = [read_line(server)]
        while not lines[-1].startswith("export KIMI_CLI_NO_AUTO_UPDATE"):
            lines.append(read_line(server))
    ran = subprocess.run(
        ["sh", "-c", "\n".join([*lines, 'cat "$KIMI_SHARE_DIR/config.toml"'])],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert 'base_url = "http://127.0.0.1:' in ran.stdout
    assert homes.is_dir()  # it was named, and stays


def test_a_port_that_is_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = subprocess.run(
            [*COMMAND, "model", "--port", str(port)],
            env=environment(tmp_path),
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=60,
        )
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == (
        f"sessionmgr: error: --port: {port}: Address already in use; "
        "choose another port, or leave it out\n"
    )
