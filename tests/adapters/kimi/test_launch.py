"""Kimi's command line and handshake, and which runs share a process."""

from __future__ import annotations

from pathlib import Path

import trio
import trio.testing
from trio.testing import MockClock

from sessionmgr.adapter import Allow, ApprovalRequest, Decision
from sessionmgr.adapter.kit import FunctionTool, RpcCall
from sessionmgr.manager import open_manager
from sessionmgr.model import Json
from sessionmgr.store import MemoryStore
from sessionmgr.testing.mock_sdk import MockSdk, with_sdk
from sessionmgr_adapters.kimi import KimiOptions
from sessionmgr_adapters.kimi.launch import KimiSpec
from tests.adapters.kimi.mock_agent import Talk, agent_of_frames
from tests.adapters.kimi.mocked_manager import UncheckedKimi


async def allow(_: ApprovalRequest) -> Decision:
    await trio.lowlevel.checkpoint()
    return Allow()


async def identity(given: dict[str, Json]) -> Json:
    await trio.lowlevel.checkpoint()
    return given


def spec_of(talk: Talk) -> KimiSpec:
    assert isinstance(talk.opening, KimiSpec)
    return talk.opening


async def test_the_settings_of_a_run_are_those_of_its_process(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    tool = FunctionTool(name="f", description="F.", call=identity)
    other = tmp_path / "other"
    other.mkdir()
    async with (
        MockSdk(agent_of_frames) as sdk,
        open_manager(
            store=MemoryStore(),
            adapters={"kimi": with_sdk(UncheckedKimi, sdk)},
            environ={"HOME": "/nowhere", "PATH": "/nowhere", "KIMI_API_KEY": "k", "UNKNOWN": "x"},
        ) as manager,
    ):
        session = await manager.open_session("kimi", cwd=tmp_path, approve=allow)
        await (await session.submit("hi")).result()
        options = KimiOptions(
            command=("kimi", "--debug"),
            home="/share",
            thinking=False,
            questions=True,
            tools=(tool,),
        )
        wishes = {"options": options, "model": "m", "max_turns": 3, "directories": [other]}
        for mode in ("default", "plan", "full_auto", "full_auto"):
            run = await session.submit("hi", permission_mode=mode, **wishes)  # type: ignore[arg-type]
            assert (await run.result()).text == "hi"
        first, second, third, fourth, fifth = map(spec_of, sdk.conversations)
        assert len(sdk.connections) == 4
    plain = ("kimi-cli", "--wire", "--session", first.session)
    assert first.command.argv == plain
    assert first.command.env["KIMI_API_KEY"] == "k"
    assert first.command.env["KIMI_CLI_NO_AUTO_UPDATE"] == "1"
    assert "UNKNOWN" not in first.command.env
    assert "KIMI_SHARE_DIR" not in first.command.env
    flags = ("--no-thinking", "--model=m", "--max-steps-per-turn=3", f"--add-dir={other}")
    argv = ("kimi", "--debug", "--wire", "--session", first.session)
    assert second.command.argv == third.command.argv == (*argv, *flags)
    assert second.command.env["KIMI_SHARE_DIR"] == "/share"
    assert fourth.command.argv == (*argv, "--yolo", *flags)
    assert fifth == fourth
    asked: Json = {"supports_question": True, "supports_plan_mode": False}
    assert second.introduction["capabilities"] == asked
    schema: Json = {"type": "object"}
    described: Json = [{"name": "f", "description": "F.", "parameters": schema}]
    assert second.introduction["external_tools"] == described
    plans: Json = {"supports_question": True, "supports_plan_mode": True}
    assert third.introduction["capabilities"] == plans


async def test_an_image_is_sent_beside_the_prompt_or_refuses_it(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (tmp_path / "b.png").write_text("none")
    async with (
        MockSdk(agent_of_frames) as sdk,
        open_manager(
            store=MemoryStore(),
            adapters={"kimi": with_sdk(UncheckedKimi, sdk)},
            environ={"PATH": "/nowhere"},
        ) as manager,
    ):
        session = await manager.open_session("kimi", cwd=tmp_path)
        await (await session.submit("see", images=["a.png"])).result()
        refused = await (await session.submit("see", images=["b.png"])).result()
    assert refused.failure is not None
    assert "b.png is not a PNG" in refused.failure.message
    sent = [each for each in sdk.conversations[0].heard_so_far if isinstance(each, RpcCall)]
    url = "data:image/png;base64,iVBORw0KGgo="
    content: Json = [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": url}},
    ]
    assert sent[-1].params == {"user_input": content}


async def test_a_process_that_is_not_to_be_kept_ends_with_its_run() -> None:
    async with (
        MockSdk(agent_of_frames) as sdk,
        open_manager(
            store=MemoryStore(),
            adapters={"kimi": with_sdk(UncheckedKimi, sdk)},
            environ={"PATH": "/nowhere"},
        ) as manager,
    ):
        session = await manager.open_session("kimi")
        for keep in (False, True):
            run = await session.submit("hi", options={"keep": keep})
            assert (await run.result()).text == "hi"
        await trio.testing.wait_all_tasks_blocked()
        assert sdk.connections[0].is_closed
        assert not sdk.connections[1].is_closed
        await session.close()
    assert sdk.connections[1].is_closed
