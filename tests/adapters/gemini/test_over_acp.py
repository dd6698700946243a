"""Gemini over ACP: its conformance, its options in terms of ACP, and the choice of the way."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from sessionmgr.adapter import RunSpec
from sessionmgr.manager import open_manager
from sessionmgr.model import Json, PermissionMode
from sessionmgr.store import MemoryStore
from sessionmgr.testing.adapter_conformance import AdapterCase, AdapterConformance, Play
from sessionmgr.testing.mock_sdk import MockSdk, with_sdk
from sessionmgr_adapters.acp.frames import SessionMode, SessionModes
from sessionmgr_adapters.acp.sdk import AcpSpec
from sessionmgr_adapters.gemini import GeminiAdapter, GeminiOptions
from sessionmgr_adapters.gemini.headless import GeminiHeadlessAdapter
from sessionmgr_adapters.gemini.over_acp import GeminiOverAcp
from tests.adapters.acp.mock_agent import (
    Talk,
    ended,
    obey,
    opening,
    prompt_of,
    session_of,
)

PROGRAM: Final[dict[str, Json]] = {"command": ["gemini", "--debug"]}
CASE: Final = AdapterCase(
    adapter=GeminiOverAcp,
    answers=Play(prompt="say one two; use hammer; three", text="three", options=PROGRAM),
    fails=Play(prompt="half; fail at last", text="half", options=PROGRAM),
    hangs=Play(prompt="half; wait 1000", text="half", options=PROGRAM),
    deaf=Play(prompt="half; deaf 1000", text="half", options=PROGRAM),
    asks=Play(prompt="ask saw; done", text="done", options=PROGRAM),
    virtual=True,
)
MODES: Final = SessionModes(
    current="default",
    available=tuple(SessionMode(id=each) for each in ("default", "autoEdit", "yolo", "plan")),
)


async def gemini(it: Talk) -> None:
    """Follow the orders in a prompt, as an agent with Gemini's modes."""
    call = await opening(it, modes=MODES)
    for order in prompt_of(call).split(";"):
        if not await obey(it, order.strip(), session_of(call)):
            return
    it.says(ended())


class TestGeminiOverAcp(AdapterConformance):
    case = CASE

    @asynccontextmanager
    async def open_case(self, place: Path) -> AsyncGenerator[AdapterCase, None]:
        async with MockSdk(gemini) as sdk:
            yield replace(self.case, adapter=with_sdk(GeminiOverAcp, sdk))


@pytest.mark.parametrize(("model", "given"), [("fast", "flash"), ("capable", "pro"), ("x", "x")])
async def test_the_options_reach_the_process(tmp_path: Path, model: str, given: str) -> None:
    async with (
        MockSdk(gemini) as sdk,
        open_manager(
            store=MemoryStore(), adapters={"gemini": with_sdk(GeminiOverAcp, sdk)}, environ={}
        ) as manager,
    ):
        session = await manager.open_session(
            "gemini", cwd=tmp_path, permission_mode=PermissionMode.FULL_AUTO
        )
        run = await session.submit(
            "hi", model=model, options={**PROGRAM, "home": "house", "trust": True}
        )
        result = await run.result()
    assert result.text == "hi", result.failure
    [connection] = sdk.connections
    spec = connection.spec
    assert isinstance(spec, AcpSpec)
    assert spec.command.argv == ("gemini", "--debug", "--acp", "-m", given)
    env = spec.command.env
    assert env["GEMINI_CLI_HOME"] == str(tmp_path / "house")
    assert env["GEMINI_CLI_TRUST_WORKSPACE"] == "true"


def spec_of(options: GeminiOptions, **more: Any) -> RunSpec:
    permission = GeminiAdapter.permission_map(options).ask("gemini", PermissionMode.DEFAULT)
    known: dict[str, Any] = {
        "prompt": "hi",
        "cwd": "/",
        "env": {},
        "permission": permission,
        "options": options,
    }
    return RunSpec(**{**known, **more})


OVER_ACP: Final = GeminiOptions()
HEADLESS: Final = GeminiOptions(headless=True)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (spec_of(GeminiOptions(output="text")), "options.output: 'text' needs options.headless"),
        (spec_of(OVER_ACP, prompt="/memory show"), "prompt: Gemini would execute '/memory'"),
        (spec_of(OVER_ACP, prompt=" $x"), "prompt: Gemini would execute '$x'"),
        (spec_of(OVER_ACP, tools_denied=("x",)), "tools_denied: Gemini over ACP does not support"),
        (
            spec_of(GeminiOptions(headless=True, mcp_servers={"x": {"command": "x"}})),
            "options.mcp_servers: it works over ACP only",
        ),
        (
            spec_of(GeminiOptions(mcp_servers={"x": {}})),
            "options.mcp_servers.x: it needs either a command or a url",
        ),
    ],
)
def test_what_can_never_succeed_is_refused(spec: RunSpec, words: str) -> None:
    assert (GeminiAdapter.fault(spec) or "").startswith(words)


def test_what_can_succeed_is_not_refused() -> None:
    for spec in (
        spec_of(OVER_ACP, prompt="/home/x/y is broken", directories=("/b",)),
        spec_of(GeminiOptions(slash_commands=True), prompt="/memory show"),
        spec_of(HEADLESS, prompt="/memory show", tools_denied=("x",)),
    ):
        assert GeminiAdapter.fault(spec) is None


def test_the_way_decides_what_a_run_can() -> None:
    assert GeminiAdapter.delegate(OVER_ACP) is GeminiOverAcp
    assert GeminiAdapter.delegate(HEADLESS) is GeminiHeadlessAdapter
    assert GeminiAdapter.offers(OVER_ACP).tool_approval == "native"
    assert GeminiAdapter.offers(HEADLESS).tool_approval == "unsupported"
    assert GeminiAdapter.offers(HEADLESS).system_prompt == "native"
    assert GeminiAdapter.permission_map(HEADLESS) is GeminiHeadlessAdapter.permissions
