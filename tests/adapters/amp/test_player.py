"""Runs with a player in place of Amp; its transcripts are written by hand from the schema."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from sessionmgr.manager import SessionHandle, open_manager
from sessionmgr.model import (
    FailureKind,
    Json,
    MessageReceived,
    PermissionMode,
    ProcessExited,
    RunStarted,
    RunStatus,
    ToolCallFailed,
)
from sessionmgr.store import MemoryStore
from sessionmgr.testing.player import (
    ExitStep,
    ExpectStep,
    HangStep,
    RepeatStep,
    Step,
    UntilClosedStep,
    WriteStep,
    command_of,
)
from sessionmgr_adapters.amp import AmpAdapter
from tests.adapters.amp.dialect import INIT, RESULT, THREAD, assistant, line, text, user
from tests.adapters.amp.mock_agent import ENVIRON

PNG = b"\x89PNG\r\n\x1a\n and more"


@asynccontextmanager
async def opened(
    place: Path, mode: str = "default", environ: dict[str, str] = ENVIRON
) -> AsyncGenerator[SessionHandle, None]:
    """Open a session in a directory, with an environment of its own."""
    env = {**environ, "HOME": str(place)}
    async with open_manager(
        store=MemoryStore(), adapters={"amp": AmpAdapter}, environ=env
    ) as manager:
        yield await manager.open_session("amp", cwd=place, permission_mode=PermissionMode(mode))


def playing(place: Path, *steps: Step, name: str = "playbook") -> dict[str, Json]:
    """Return the options for a player with these steps."""
    return {"command": [*command_of(steps, place / f"{name}.json")]}


def prompt(words: str, **fields: Json) -> ExpectStep:
    """Return the step that waits for a message of ours."""
    content: Json = [{"type": "text", "text": words}]
    return ExpectStep({"type": "user", "message": {"role": "user", "content": content}, **fields})


def error(message: str, subtype: str = "error_during_execution") -> bytes:
    """Return the result of a turn that has failed, as a line."""
    return line(
        type="result", subtype=subtype, duration_ms=1, is_error=True, num_turns=1, error=message
    )


async def test_a_run_ends_with_the_result_that_follows_the_end_of_its_input(tmp_path: Path) -> None:
    steps: Sequence[Step] = (
        prompt("hi"),
        WriteStep(INIT + user({"type": "text", "text": "hi"})),
        WriteStep(assistant({"type": "thinking", "thinking": "hm"}, stop="tool_use")),
        WriteStep(text("well", "end_turn")),
        UntilClosedStep(),  # Amp writes its result only then
        WriteStep(line(type="result", subtype="success", is_error=False, result="well")),
    )
    async with opened(tmp_path) as session:
        run = await session.submit("hi", options=playing(tmp_path, *steps))
        events = [event async for event in run]
        result = await run.result()
    assert (result.status, result.text, result.stop_reason) == ("completed", "well", "end_turn")
    assert result.provider_session_id == THREAD
    assert (result.usage.input, result.usage.output) == (10, 4)
    assert result.exit_code == 0
    types = [event.type for event in events]
    assert types.count("message_received") == 1  # neither our prompt nor the result is another
    assert "reasoning_received" in types
    (start,) = (event for event in events if isinstance(event, RunStarted))
    assert (start.cwd, start.credential) == ("/work", "api_key")
    (end,) = (event for event in events if isinstance(event, ProcessExited))
    assert types.index("process_exited") < types.index("run_completed")
    assert not end.forced


async def test_a_further_message_is_sent_to_steer(tmp_path: Path) -> None:
    steps: Sequence[Step] = (
        prompt("hi"),
        WriteStep(INIT + text("working")),
        prompt("and keep it short", steer=True),
        WriteStep(user({"type": "text", "text": "and keep it short"})),
        WriteStep(text("ok", "end_turn")),
        UntilClosedStep(),
        WriteStep(RESULT),
    )
    async with opened(tmp_path) as session:
        run = await session.submit("hi", options=playing(tmp_path, *steps))
        states: list[str] = []
        async for event in run:
            if event.type == "message_received" and getattr(event, "content", "") == "working":
                follow_up = await run.append("and keep it short")
                assert follow_up.accepted
            if event.type == "message_sent" and getattr(event, "follow_up", False):
                states.append(getattr(event, "state", ""))
        result = await run.result()
    assert (result.status, result.text) == ("completed", "ok")
    assert states == ["queued", "sent"]


async def test_the_next_run_continues_the_thread(tmp_path: Path) -> None:
    argv = tmp_path / "argv"
    recorder = tmp_path / "amp"
    steps = (prompt("hi"), WriteStep(INIT + text("well", "end_turn")), UntilClosedStep())
    player = command_of((*steps, WriteStep(RESULT)), tmp_path / "playbook.json")
    program = " ".join(f"'{each}'" for each in player)
    recorder.write_text(f'#!/bin/sh\necho "$@" >> {argv}\nexec {program}\n')
    recorder.chmod(0o755)
    async with opened(tmp_path) as session:
        for _ in range(2):
            async with session.start("hi", options={"command": [str(recorder)]}) as run:
                result = await run.result()
            assert result.status == RunStatus.COMPLETED, result.failure
    first, second = argv.read_text().splitlines()
    assert first.startswith("--execute --stream-json --stream-json-thinking --stream-json-input")
    assert second.startswith(f"threads continue {THREAD} --execute")
    assert "--dangerously-allow-all" not in first + second
    assert "--no-archive-after-execute" in first


async def test_images_are_sent_with_the_prompt(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    source: Json = {
        "type": "base64",
        "media_type": "image/png",
        "data": base64.b64encode(PNG).decode(),
    }
    content: Json = [{"type": "text", "text": "look"}, {"type": "image", "source": source}]
    seen = ExpectStep({"type": "user", "message": {"role": "user", "content": content}})
    steps = (seen, WriteStep(INIT + text("a cat", "end_turn")), UntilClosedStep())
    async with opened(tmp_path) as session:
        options = playing(tmp_path, *steps, WriteStep(RESULT))
        async with session.start("look", images=["a.png"], options=options) as run:
            assert (await run.result()).text == "a cat"
        async with session.start("look", images=["b.png"], options=options) as run:
            failure = (await run.result()).failure
    assert failure is not None
    assert failure.kind is FailureKind.CONFIG_INVALID
    assert "b.png cannot be read" in failure.message


async def test_a_cancel_is_a_signal_whose_result_is_awaited(tmp_path: Path) -> None:
    program = tmp_path / "amp.py"
    program.write_text(
        "import os, signal, sys\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})\n"
        "sys.stdin.readline()\n"
        f"os.write(1, {INIT + text('half')!r})\n"
        "signal.sigwait({signal.SIGINT})\n"
        f"os.write(1, {error('User cancelled (SIGINT/SIGTERM)')!r})\n"
    )
    async with opened(tmp_path) as session:
        command: Json = [sys.executable, "-I", "-S", str(program)]
        run = await session.submit("hi", options={"command": command})
        types: list[str] = []
        async for event in run:
            types.append(event.type)
            if event.type == "message_received":
                run.cancel("enough")
        result = await run.result()
    assert (result.status, result.text, result.detail) == ("cancelled", "half", "enough")
    assert "turn_completed" in types  # Amp's own result was read
    assert result.exit_code == 0


async def test_a_missing_result_is_a_failure_whatever_the_exit_code(tmp_path: Path) -> None:
    steps = (prompt("hi"), WriteStep(INIT + text("well", "end_turn")), UntilClosedStep())
    async with (
        opened(tmp_path) as session,
        session.start("hi", options=playing(tmp_path, *steps)) as run,
    ):
        result = await run.result()
    assert (result.status, result.text) == ("failed", "well")
    assert result.failure is not None
    assert (result.failure.kind, result.failure.exit_code) == (FailureKind.PROCESS_EXITED, 0)


async def test_a_tool_that_needs_approval_fails_the_run_and_says_how_to_allow_it(
    tmp_path: Path,
) -> None:
    why = "The following tools require user approval, which is not supported in stream JSON mode: x"
    call: dict[str, object] = {"type": "tool_use", "id": "t1", "name": "x", "input": {}}
    steps = (
        prompt("hi"),
        WriteStep(INIT + assistant(call, stop="tool_use") + error(why)),
        UntilClosedStep(),
    )
    async with (
        opened(tmp_path) as session,
        session.start("hi", options=playing(tmp_path, *steps)) as run,
    ):
        failure = (await run.result()).failure
    assert failure is not None
    assert failure.kind is FailureKind.PERMISSION_REFUSED
    assert why in failure.message
    for remedy in ("option permissions", "amp.permissions", "full_auto"):
        assert remedy in failure.message


async def test_a_flood_of_messages_is_stored(tmp_path: Path) -> None:
    flood = RepeatStep(text("word"), 2_000)
    steps = (prompt("hi"), WriteStep(INIT), flood, WriteStep(text("last") + RESULT))
    async with opened(tmp_path) as session:
        run = await session.submit("hi", options=playing(tmp_path, *steps))
        types = [event.type async for event in run]
        assert (await run.result()).text == "last"
    assert types.count("message_received") == 2_001


async def test_nothing_is_started_without_a_key(tmp_path: Path) -> None:
    started = tmp_path / "started"
    options: dict[str, Json] = {"command": ["/bin/sh", "-c", f"touch {started}"]}
    for key in ({}, {"AMP_API_KEY": ""}):
        environ = {name: value for name, value in ENVIRON.items() if name != "AMP_API_KEY"} | key
        async with (
            opened(tmp_path, environ=environ) as session,
            session.start("hi", options=options) as run,
        ):
            failure = (await run.result()).failure
        assert failure is not None
        assert failure.kind is FailureKind.AUTH_FAILED
        assert "AMP_API_KEY is not set" in failure.message
        assert "https://ampcode.com/settings/security" in failure.message
    assert not started.exists()


async def test_an_error_of_the_start_has_the_kind_of_its_text(tmp_path: Path) -> None:
    for number, (words, kind) in enumerate(
        (
            ("Error: Invalid thread URL or ID: x", FailureKind.SESSION_NOT_FOUND),
            ("This thread is already open and active in another Amp.", FailureKind.SESSION_BUSY),
            ("Error: error: unknown option '--effort'", FailureKind.CONFIG_INVALID),
            ("Error: Cannot reach Amp servers. Are you offline?", FailureKind.PROVIDER_ERROR),
            ("Unexpected error inside Amp CLI", FailureKind.PROCESS_EXITED),
            (
                "The x tool requires user approval. Rerun with --dangerously-allow-all to bypass",
                FailureKind.PERMISSION_REFUSED,
            ),
        )
    ):
        steps = (prompt("hi"), WriteStep(words.encode() + b"\n", 2), ExitStep(1))
        options = playing(tmp_path, *steps, name=str(number))
        async with opened(tmp_path) as session, session.start("hi", options=options) as run:
            failure = (await run.result()).failure
        assert failure is not None
        assert (failure.kind, failure.phase, failure.exit_code) == (kind, "start", 1)
        assert failure.retryable == (kind is FailureKind.PROVIDER_ERROR)
        assert words[-40:] in failure.message
        assert ("option permissions" in failure.message) == (kind is FailureKind.PERMISSION_REFUSED)


async def test_the_settings_and_servers_of_a_run_are_in_private_files(tmp_path: Path) -> None:
    (tmp_path / ".config/amp").mkdir(parents=True)
    theirs = (
        '{"amp.showCosts": false, // ours\n "amp.permissions": [{"tool": "x", "action": "ask"}],}'
    )
    (tmp_path / ".config/amp/settings.jsonc").write_text(theirs)
    copies = tmp_path / "copies"
    copies.mkdir()
    program = tmp_path / "amp"
    program.write_text(
        "#!/bin/sh\nwhile [ $# -gt 0 ]; do\n"
        f'case "$1" in *-file|*-config) cp -p "$2" {copies};; esac; shift; done\nexit 1\n'
    )
    program.chmod(0o755)
    rule: Json = {"tool": "Bash", "action": "allow", "matches": {"cmd": "ls*"}}
    options: dict[str, Json] = {
        "command": [str(program)],
        "permissions": [rule],
        "mcp_servers": {"s": {"command": "x", "env": {"TOKEN": "abc"}}},
    }
    async with (
        opened(tmp_path) as session,
        session.start("hi", options=options, tools_denied=["web_search"]) as run,
    ):
        assert (await run.result()).status == RunStatus.FAILED
    settings = json.loads((copies / "settings-file.json").read_text())
    assert settings == {
        "amp.showCosts": False,
        "amp.permissions": [rule, {"tool": "x", "action": "ask"}],
        "amp.dangerouslyAllowAll": False,
        "amp.tools.disable": ["web_search"],
    }
    servers = copies / "mcp-config.json"
    assert json.loads(servers.read_text()) == {"s": {"command": "x", "env": {"TOKEN": "abc"}}}
    assert servers.stat().st_mode & 0o077 == 0


async def test_a_tool_that_fails_and_one_of_a_sub_agent_are_reported(tmp_path: Path) -> None:
    call: dict[str, object] = {"type": "tool_use", "id": "t1", "name": "Task", "input": {"a": 1}}
    inner = {"type": "assistant", "message": {"content": [{"type": "text", "text": "sub"}]}}
    failed: dict[str, object] = {
        "type": "tool_result",
        "tool_use_id": "t1",
        "content": "no",
        "is_error": True,
    }
    steps = (
        prompt("hi"),
        WriteStep(INIT + assistant(call, stop="tool_use")),
        WriteStep(line(**inner, parent_tool_use_id="t1")),
        WriteStep(user(failed) + text("ok", "end_turn")),
        UntilClosedStep(),
        WriteStep(RESULT),
        HangStep(0),
    )
    async with opened(tmp_path) as session:
        run = await session.submit("hi", options=playing(tmp_path, *steps))
        events = [event async for event in run]
        assert (await run.result()).text == "ok"
    (end,) = (event for event in events if isinstance(event, ToolCallFailed))
    assert (end.tool_name, end.tool_input, end.tool_output) == ("Task", {"a": 1}, "no")
    (sub, _) = (event for event in events if isinstance(event, MessageReceived))
    assert (sub.content, sub.parent_tool_call_id) == ("sub", "t1")
