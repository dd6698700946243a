"""The clients of the protocol's own libraries, on the installed command and a scripted agent."""

import json
import os
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.acp_server import schema
from tests.cli.command import COMMAND, environment
from tests.cli.scripted_agent import install_scripted_agent
from tests.real.agent_programs import program_of

HERE = Path(__file__).parent


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """The environment of a command for which the scripted provider is installed."""
    made = environment(tmp_path)
    path = install_scripted_agent(tmp_path / "agents")
    made["PYTHONPATH"] = os.pathsep.join([path, made["PYTHONPATH"]])
    return made


def converse(program: Path, script: str, env: dict[str, str], cwd: Path) -> dict[str, Any]:
    """Run a client, and return what it found."""
    wrapped = ["env", f"PYTHONPATH={env['PYTHONPATH']}", *COMMAND, "acp", "-p", "scripted"]
    outer = {name: value for name, value in env.items() if name != "PYTHONPATH"}
    run = subprocess.run(
        [str(program), str(HERE / script), str(cwd), *wrapped],
        env=outer,
        cwd=cwd,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    assert "sessionmgr: " not in run.stderr
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def test_the_client_for_typescript_speaks_version_1(tmp_path: Path, env: dict[str, str]) -> None:
    found = converse(program_of(*schema.SDK), "typescript_v1.mjs", env, tmp_path)
    assert found["initialized"]["protocolVersion"] == 1
    assert found["initialized"]["agentInfo"]["name"] == "sessionmgr"
    assert found["modes"]["currentModeId"] == "default"
    assert found["ended"]["stopReason"] == "end_turn"
    assert found["cancelled"]["stopReason"] == "cancelled"
    assert found["failure"]["code"] == -32000
    assert [each["toolCall"]["kind"] for each in found["asked"]] == ["execute"]
    assert found["code"] == 0
    kinds: Counter[str] = Counter(found["kinds"])
    assert kinds["agent_thought_chunk"] == 2
    assert kinds["tool_call"] == 2  # once live, once replayed
    assert found["replayed"][:2] == ["session_info_update", "user_message_chunk"]
    assert len(found["sessions"]) == 1


def test_the_client_for_typescript_speaks_version_2(tmp_path: Path, env: dict[str, str]) -> None:
    found = converse(program_of(*schema.SDK), "typescript_v2.mjs", env, tmp_path)
    assert found["initialized"]["protocolVersion"] == 2
    assert len({each["messageId"] for each in found["messages"]}) == 3
    states = [each for each in found["updates"] if each["sessionUpdate"] == "state_update"]
    assert [each["state"] for each in states] == [
        *("running", "requires_action", "running", "idle"),
        *("running", "idle", "running", "idle", "idle"),
    ]
    stops = [each.get("stopReason") for each in states if each["state"] == "idle"]
    assert stops == ["end_turn", "error", "cancelled", None]
    assert found["asked"][0]["subject"]["type"] == "tool_call"
    assert found["replayed"].count("user_message") == 3
    assert found["replayed"][-1] == "state_update"
    assert found["code"] == 0


def test_the_client_for_python_speaks_version_1(tmp_path: Path, env: dict[str, str]) -> None:
    found = converse(program_of(*schema.SDK_PYTHON), "python_v1.py", env, tmp_path)
    assert found["version"] == 1
    assert "plan" in found["modes"]
    assert found["stops"] == ["end_turn", "cancelled"]
    assert found["failure"] == -32000
    assert found["asked"] == 1
    assert found["replayed"][:2] == ["session_info_update", "user_message_chunk"]
    assert found["sessions"] == [True]
    assert {"agent_message_chunk", "tool_call", "current_mode_update"} <= set(found["kinds"])
    assert found["code"] == 0
