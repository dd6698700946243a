"""kimi-code over ACP: its conformance, and the choice between it and kimi-cli."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
import trio

from sessionmgr.adapter import RunSpec
from sessionmgr.adapter.kit import FunctionTool
from sessionmgr.manager import open_manager
from sessionmgr.model import Json, PermissionMode
from sessionmgr.store import MemoryStore
from sessionmgr.testing.adapter_conformance import AdapterCase, AdapterConformance, Play
from sessionmgr.testing.mock_sdk import MockSdk, with_sdk
from sessionmgr_adapters.acp.frames import SessionMode, SessionModes
from sessionmgr_adapters.acp.sdk import AcpSpec
from sessionmgr_adapters.kimi import KimiAdapter, KimiOptions
from sessionmgr_adapters.kimi.code_adapter import KimiCodeAdapter
from sessionmgr_adapters.kimi.wire_adapter import KimiWireAdapter
from tests.adapters.acp.mock_agent import Talk, ended, obey, opening, prompt_of, session_of

CODE: Final[dict[str, Json]] = {"code": True}
CASE: Final = AdapterCase(
    adapter=KimiCodeAdapter,
    answers=Play(prompt="say one two; use hammer; three", text="three", options=CODE),
    fails=Play(prompt="half; fail at last", text="half", options=CODE),
    hangs=Play(prompt="half; wait 1000", text="half", options=CODE),
    deaf=Play(prompt="half; deaf 1000", text="half", options=CODE),
    asks=Play(prompt="ask saw; done", text="done", options=CODE),
    virtual=True,
)
MODES: Final = SessionModes(
    current="default",
    available=tuple(SessionMode(id=each) for each in ("default", "plan", "auto", "yolo")),
)


async def kimi_code(it: Talk) -> None:
    """Follow the orders in a prompt, as an agent with kimi-code's modes."""
    call = await opening(it, modes=MODES, confirms=True)
    for order in prompt_of(call).split(";"):
        if not await obey(it, order.strip(), session_of(call)):
            return
    it.says(ended())


class TestKimiCode(AdapterConformance):
    case = CASE

    @pytest.fixture(autouse=True)
    def _isolated(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Hide an installed Kimi."""
        monkeypatch.setenv("PATH", "/nowhere")

    @asynccontextmanager
    async def open_case(self, place: Path) -> AsyncGenerator[AdapterCase, None]:
        async with MockSdk(kimi_code) as sdk:
            yield replace(self.case, adapter=with_sdk(KimiCodeAdapter, sdk))


async def test_the_options_reach_the_process(tmp_path: Path) -> None:
    async with (
        MockSdk(kimi_code) as sdk,
        open_manager(
            store=MemoryStore(),
            adapters={"kimi": with_sdk(KimiCodeAdapter, sdk)},
            environ={"PATH": "/nowhere"},
        ) as manager,
    ):
        session = await manager.open_session(
            "kimi", cwd=tmp_path, permission_mode=PermissionMode.FULL_AUTO
        )
        run = await session.submit("hi", options={**CODE, "home": "house"})
        result = await run.result()
    assert result.text == "hi", result.failure
    [connection] = sdk.connections
    spec = connection.spec
    assert isinstance(spec, AcpSpec)
    assert spec.command.argv == ("kimi", "acp")
    assert spec.command.env["KIMI_CODE_HOME"] == str(tmp_path / "house")


def spec_of(options: KimiOptions, **more: object) -> RunSpec:
    permission = KimiAdapter.permission_map(options).ask("kimi", PermissionMode.FULL_AUTO)
    env = {"PATH": "/nowhere"}
    known = {"prompt": "hi", "cwd": "/", "env": env, "permission": permission, "options": options}
    return RunSpec(**{**known, **more})  # type: ignore[arg-type]


async def hammer(_: dict[str, Json]) -> Json:
    await trio.lowlevel.checkpoint()
    return "hit"


HAMMER: Final = FunctionTool(name="hammer", description="Hit.", call=hammer)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (KimiOptions(fork=True), "options.fork: kimi-cli cannot do that"),
        (KimiOptions(mcp_servers={"x": {}}), "options.mcp_servers: kimi-cli cannot do that"),
        (KimiOptions(code=True, keep=False), "options.keep: it is one of kimi-cli"),
        (KimiOptions(code=True, thinking=True), "options.thinking: it is one of kimi-cli"),
        (KimiOptions(code=True, questions=True), "options.questions: it is one of kimi-cli"),
        (
            KimiOptions(code=True, tools=(HAMMER,)),
            "options.tools: it is one of kimi-cli",
        ),
        (KimiOptions(code=True, fork=True), "options.fork: the session has nothing to copy"),
    ],
)
def test_what_can_never_succeed_is_refused(options: KimiOptions, words: str) -> None:
    assert (KimiAdapter.fault(spec_of(options)) or "").startswith(words)


def test_the_option_decides_which_kimi_is_used() -> None:
    wire, code = KimiOptions(), KimiOptions(code=True)
    assert (wire.program, code.program) == (("kimi-cli",), ("kimi",))
    assert KimiOptions(code=True, command=("k", "x")).program == ("k", "x")
    assert KimiAdapter.delegate(wire) is KimiWireAdapter
    assert KimiAdapter.delegate(code) is KimiCodeAdapter
    assert KimiAdapter.offers(wire).steer == "native"
    assert KimiAdapter.offers(code).steer == "unsupported"
    assert KimiAdapter.fault(spec_of(code)) is None


def test_a_program_that_is_kimi_cli_is_not_started_as_kimi_code(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "kimi"
    program.parent.mkdir()
    program.write_text(f"#!{tmp_path}/bin/python3\n")
    program.chmod(0o755)
    env = {"PATH": str(program.parent)}
    code = KimiOptions(code=True)
    assert KimiAdapter.readiness(code, env, "/").state == "ok"
    (tmp_path / "lib/python3.13/site-packages/kimi_cli-1.52.0.dist-info").mkdir(parents=True)
    found = KimiAdapter.readiness(code, env, "/")
    assert found.state == "fail"
    assert "is kimi-cli 1.52.0, not kimi-code" in found.detail
    assert "npm install -g @moonshot-ai/kimi-code" in found.detail
    assert KimiAdapter.fault(spec_of(code, env=env)) == found.detail
    program.write_text("#!/usr/bin/env node\n")
    assert KimiAdapter.readiness(code, env, "/").state == "ok"
    assert KimiAdapter.readiness(code, {"PATH": "/nowhere"}, "/").state != "ok"
