"""The plugin in a separate pytest process."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLUGIN = "sessionmgr_adapters.pytest_plugin"

MODULE = """
import pytest
import trio

from sessionmgr.model import MessageReceived, RunStarted
from sessionmgr.adapter import ProviderAdapter
from sessionmgr.testing.adapter_conformance import AdapterCase, AdapterConformance, Play
from sessionmgr.testing.player import ExitStep, WriteStep
from sessionmgr.testing.script import Say


class Echo(ProviderAdapter):
    name = "echo"

    async def run(self, run):
        await run.emit(RunStarted(provider_session_id=run.session_id))
        await run.emit(MessageReceived(content=run.prompt))
        await run.finish()


class TestEcho(AdapterConformance):
    case = AdapterCase(adapter=Echo, answers=Play(prompt="hi", text="hi"), virtual=True)


class TestWrong(AdapterConformance):
    case = AdapterCase(adapter=Echo, answers=Play(prompt="hi", text="ho"), virtual=True)


def test_a_player(sessionmgr_player):
    argv = sessionmgr_player([WriteStep(b"hello"), ExitStep(3)])

    async def play():
        return await trio.run_process(argv, capture_stdout=True, check=False)

    found = trio.run(play)
    assert (found.stdout, found.returncode) == (b"hello", 3)


def test_a_script(sessionmgr_scripted):
    async def play():
        async with sessionmgr_scripted({"fix it": (Say(text="done"),)}) as manager:
            session = await manager.open_session("scripted")
            return await (await session.submit("fix it")).result()

    assert trio.run(play).text == "done"


def test_a_model(sessionmgr_model_server):
    async def ask(target):
        async with sessionmgr_model_server() as server:
            stream = await trio.open_tcp_stream("127.0.0.1", server.port)
            async with stream:
                await stream.send_all(f"HEAD {target} HTTP/1.1\\r\\n\\r\\n".encode())
                return await stream.receive_some()

    assert trio.run(ask, "/").startswith(b"HTTP/1.1 200")
    with pytest.raises(AssertionError, match="elsewhere"):
        trio.run(ask, "http://elsewhere/")
"""


def run(*argv: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT), str(ROOT / "adapters")])
    return subprocess.run(
        [sys.executable, *argv],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_other_peoples_adapters_are_held_to_the_laws(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(MODULE)
    found = run("-m", "pytest", "-p", PLUGIN, "-q", "-ra", "-p", "no:cacheprovider", cwd=tmp_path)
    assert found.returncode == 1, found.stdout + found.stderr
    failed = [line for line in found.stdout.splitlines() if line.startswith("FAILED")]
    assert all("TestWrong" in line for line in failed)
    assert any("a_run_has_one_start_and_one_end" in line for line in failed)
    assert "its text is 'hi'" in found.stdout
    assert "skipped" not in found.stdout


def test_who_does_not_use_it_does_not_pay(tmp_path: Path) -> None:
    told = "print('sessionmgr' in sys.modules, 'trio' in sys.modules)"
    program = f"import pytest, sys, {PLUGIN}; {told}"
    assert run("-c", program, cwd=tmp_path).stdout.split() == ["False", "False"]


def test_the_test_kit_does_not_need_pytest(tmp_path: Path) -> None:
    program = (
        "import sys; import sessionmgr.testing, sessionmgr.testing.adapter_conformance, "
        "sessionmgr.testing.mock_sdk, sessionmgr.testing.player, sessionmgr.testing.toy; "
        "print('pytest' in sys.modules, 'hypothesis' in sys.modules)"
    )
    assert run("-c", program, cwd=tmp_path).stdout.split() == ["False", "False"]
