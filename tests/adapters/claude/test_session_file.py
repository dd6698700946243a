"""Claude Code's own record of a session, as a second source of tool calls."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from sessionmgr.manager import RunHandle, open_manager
from sessionmgr.model import AnyEvent, Json, RunStatus
from sessionmgr.model.timestamps import format_timestamp
from sessionmgr.testing.mock_sdk import MockSdk
from sessionmgr_adapters.claude import ClaudeAdapter, ClaudeOptions, driver
from sessionmgr_adapters.claude.session_file import (
    SILENCE,
    SessionFile,
    is_session_stored,
    session_path,
)
from tests.adapters.claude.dialect import HELLO, INIT, SESSION
from tests.adapters.claude.mock_agent import (
    Talk,
    heard_prompt,
    idle,
    init,
    result,
    running,
    session_of,
    text,
    tool,
    tool_result,
)
from tests.adapters.claude.mocked_manager import Mock, open_claude_manager


def line(role: str, *blocks: Json, **more: Json) -> str:
    said: dict[str, Json] = {"role": role, "content": list(blocks)}
    known: dict[str, Json] = {
        "type": role,
        "message": said,
        "timestamp": format_timestamp(time.time() + 1),
    }
    return json.dumps({**known, **more}) + "\n"


def call(name: str) -> Json:
    return {"type": "tool_use", "id": name, "name": "Bash", "input": {"n": 1}}


def came_of(name: str) -> Json:
    return {"type": "tool_result", "tool_use_id": name, "content": f"output of {name}"}


async def test_it_is_found_where_the_name_of_the_directory_was_too_long(tmp_path: Path) -> None:
    home = tmp_path / "home"
    cwd = tmp_path / ("p" * 120) / ("q" * 120)
    path = session_path("s", str(cwd), {"CLAUDE_CONFIG_DIR": str(home)})
    assert path is not None
    assert not await is_session_stored(path)
    file = SessionFile(path)
    for name, said in (
        (path.parent.name[:200] + "-1x2y3z", line("user") + line("assistant", call("t1"))),
        (path.parent.name[:150] + "-other", ""),
        ("-elsewhere", ""),
    ):
        (home / "projects" / name).mkdir(parents=True)
        if said:
            (home / "projects" / name / "s.jsonl").write_text(said.replace('": ', '":'))
    assert len(await file.read_new()) == 1
    assert await is_session_stored(path)


def test_it_is_found_by_the_directory_and_the_session(tmp_path: Path) -> None:
    (tmp_path / "a_b.c").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a_b.c")
    found = session_path("s", str(tmp_path / "link"), {"HOME": "/h"})
    assert found is not None
    assert str(found).startswith("/h/.claude/projects/-")
    assert str(found).endswith("-a-b-c/s.jsonl")
    elsewhere = session_path("s", "/w", {"HOME": "/h", "CLAUDE_CONFIG_DIR": "/c"})
    assert elsewhere == Path("/c/projects/-w/s.jsonl")
    assert session_path("s", "/w", {}) is None


async def test_only_what_is_new_and_about_tools_is_read(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(line("assistant", call("before")))
    file = SessionFile(path)
    assert await file.read_new() == []
    with path.open("a") as record:
        record.write(line("assistant", call("old"), timestamp="2020-01-01T00:00:00.000Z"))
        record.write(line("assistant", call("beside"), isSidechain=True))
        record.write(line("assistant", call("odd"), timestamp=5))
        record.write(line("assistant", {"type": "text", "text": "words"}))
        record.write('{"type":"assistant","message":"none"}\n[1]\nno json\n{"type":"mode"}\n')
        record.write(line("user", came_of("t1"), {"type": "text", "text": "words"}))
        record.write(line("assistant", call("t2"))[:-9])
    (found,) = await file.read_new()
    assert "t1" in str(found.message.content)
    assert "words" not in str(found.message.content)
    with path.open("a") as record:
        record.write(line("assistant", call("t2"))[-9:])
    (found,) = await file.read_new()
    assert "t2" in str(found.message.content)
    path.unlink()
    assert await file.read_new() == []


async def tools_of(run: RunHandle) -> list[tuple[str, str]]:
    return [_told(each) async for each in run if each.type.startswith("tool_call")]


def _told(event: AnyEvent) -> tuple[str, str]:
    return event.type, str(getattr(event, "tool_call_id", ""))


async def test_what_tools_do_in_silence_is_told_from_it_and_never_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "SILENCE", 0.02)
    started: list[str] = []

    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        started.append(session_of(it))
        it.says(running(), init(session_of(it)), tool("t1", "Bash", {"n": 1}))
        await it.gate("silent")
        it.says(tool_result("t1", "output of t1"), tool("t2", "Bash", {"n": 1}))
        it.says(tool_result("t2", "output of t2"), *text("well"), result(prompt.uuid), idle())

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk, tmp_path) as session:
        options = ClaudeOptions(home=str(tmp_path))
        run = await session.submit("hi", options=options)
        await sdk.reached("silent")
        path = session_path(started[0], str(tmp_path), {"CLAUDE_CONFIG_DIR": str(tmp_path)})
        assert path is not None
        path.parent.mkdir(parents=True)
        blocks = [call("t1")], [came_of("t1")], [call("t2")]
        path.write_text("".join(line("assistant", *each) for each in blocks))
        async for event in run:
            if _told(event) == ("tool_call_started", "t2"):
                break
        sdk.open_gate("silent")
        assert (await run.result()).status is RunStatus.COMPLETED
        assert await tools_of(run) == [
            ("tool_call_started", "t1"),
            ("tool_call_completed", "t1"),
            ("tool_call_started", "t2"),
            ("tool_call_completed", "t2"),
        ]


async def test_the_file_is_not_read_while_the_agent_speaks(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    started: list[str] = []

    async def script(it: Talk) -> None:
        prompt = await heard_prompt(it)
        started.append(session_of(it))
        it.says(running(), init(session_of(it)))
        await it.gate("begun")
        for _ in range(5):
            await trio.sleep(SILENCE * 0.6)
            it.says(*text("well"))
        await it.gate("has spoken")
        it.says(result(prompt.uuid), idle())

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk, tmp_path) as session:
        run = await session.submit("hi", options=ClaudeOptions(home=str(tmp_path)))
        await sdk.reached("begun")
        path = session_path(started[0], str(tmp_path), {"CLAUDE_CONFIG_DIR": str(tmp_path)})
        assert path is not None
        path.parent.mkdir(parents=True)
        path.write_text(line("assistant", call("t1")))
        sdk.open_gate("begun")
        await sdk.reached("has spoken")
        autojump_clock.autojump_threshold = math.inf  # the clock does not wait for threads
        for _ in range(5):  # work that was started in a thread is done before
            await trio.to_thread.run_sync(path.read_bytes)
        sdk.open_gate("has spoken")
        assert (await run.result()).status is RunStatus.COMPLETED
        assert await tools_of(run) == []


DIES = """#!/bin/sh
read -r hello; cat {place}/hello
read -r prompt; cat {place}/init
sleep 0.1; kill -9 $$
"""


@pytest.mark.parametrize("written", [None, "queue-operation", "user"])
async def test_a_run_that_broke_off_is_gone_on_with_only_if_it_is_written_down(
    tmp_path: Path, written: str | None
) -> None:
    program = tmp_path / "claude"
    program.write_text(DIES.format(place=tmp_path))
    program.chmod(0o755)
    (tmp_path / "hello").write_bytes(HELLO)
    (tmp_path / "init").write_bytes(INIT)
    path = session_path(SESSION.decode(), str(tmp_path), {"CLAUDE_CONFIG_DIR": str(tmp_path)})
    assert path is not None
    if written is not None:
        path.parent.mkdir(parents=True)
        path.write_text(f'{{"type":"{written}","content":"hi"}}\n')
    options = ClaudeOptions(command=(str(program),), home=str(tmp_path))
    async with open_manager(adapters={"claude": ClaudeAdapter}) as manager:
        session = await manager.open_session("claude", cwd=tmp_path)
        failure = (await (await session.submit("hi", options=options)).result()).failure
    assert failure is not None
    assert failure.retryable
    assert failure.resumable == (written == "user")
