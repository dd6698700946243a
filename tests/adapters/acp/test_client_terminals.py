"""Commands that an agent runs through its client: real children, which end with the run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import trio
from msgspec.structs import replace

from sessionmgr.adapter import Allow, ApprovalRequest, Decision, Deny
from sessionmgr.model import Json
from sessionmgr.testing.mock_sdk import INTERRUPTED
from sessionmgr_adapters.acp import client_terminals
from sessionmgr_adapters.acp.frames import (
    AcpEnvVariable,
    TerminalCreateRequest,
    TerminalKillRequest,
    TerminalOutputRequest,
    TerminalReleaseRequest,
    TerminalWaitRequest,
    WriteFileRequest,
)
from sessionmgr_adapters.acp.updates import ToolCallNews, ToolLocation
from tests.adapters.acp.mock_agent import (
    Talk,
    chosen,
    chunk,
    ended,
    opening,
    permission,
    session_of,
    update,
)
from tests.adapters.acp.mocked_manager import Played, manager_of, play


def create(command: str, *args: str, **more: Any) -> TerminalCreateRequest:
    return TerminalCreateRequest(name="t", command=command, args=args, **more)


class Terminals:
    """An agent's requests about terminals, and the answers."""

    def __init__(self, it: Talk) -> None:
        self._it = it

    async def ask(self, request: Any) -> Any:
        """Return the answer: the result, or the code and the message."""
        self._it.says(request)
        reply: Any = await self._it.heard()
        return reply.result if reply.code is None else (reply.code, reply.message)

    async def create(self, command: str, *args: str, **more: Any) -> str:
        answer = await self.ask(create(command, *args, **more))
        return str(answer["terminalId"])

    async def wait(self, terminal: str) -> Any:
        return await self.ask(TerminalWaitRequest(name="t", terminal_id=terminal))

    async def output(self, terminal: str) -> Any:
        return await self.ask(TerminalOutputRequest(name="t", terminal_id=terminal))


async def agent(work: Path, body: Any, mode: str = "full_auto", **more: Any) -> Played:
    """Play an agent that makes these requests."""

    async def script(it: Talk) -> None:
        session = session_of(await opening(it))
        it.says(chunk(session, "x"))
        await body(Terminals(it))
        it.says(ended())

    with trio.fail_after(30):
        return await play(script, mode=mode, cwd=work, **more)


async def test_a_command_runs_in_the_directory_and_its_output_and_exit_are_reported(
    tmp_path: Path,
) -> None:
    async def body(terminals: Terminals) -> None:
        terminal = await terminals.create("echo out; echo err >&2; pwd; exit 3")
        assert await terminals.wait(terminal) == {"exitCode": 3, "signal": None}
        answer = await terminals.output(terminal)
        assert {"out", "err", str(tmp_path)} == set(answer["output"].split())
        assert answer["exitStatus"] == {"exitCode": 3, "signal": None}
        assert answer["truncated"] is False
        released = TerminalReleaseRequest(name="t", terminal_id=terminal)
        assert await terminals.ask(released) == {}
        code, _ = await terminals.output(terminal)
        assert code == -32002

    assert (await agent(tmp_path, body)).result.status == "completed"


async def test_a_command_gets_given_variables_and_none_of_the_agents_keys(tmp_path: Path) -> None:
    async def body(terminals: Terminals) -> None:
        given = (AcpEnvVariable(name="GIVEN", value="1"),)
        terminal = await terminals.create("/usr/bin/env", "-u", "X", env=given)
        await terminals.wait(terminal)
        names = [
            each.partition("=")[0] for each in (await terminals.output(terminal))["output"].split()
        ]
        assert "GIVEN" in names
        assert "AGENT_KEY" not in names

    played = await agent(tmp_path, body, env={"AGENT_KEY": "secret-value"})
    assert played.result.status == "completed"


async def test_only_the_end_of_a_long_output_is_kept(tmp_path: Path) -> None:
    async def body(terminals: Terminals) -> None:
        terminal = await terminals.create("printf abcdefgh", output_byte_limit=3)
        await terminals.wait(terminal)
        answer = await terminals.output(terminal)
        assert (answer["output"], answer["truncated"]) == ("fgh", True)

    assert (await agent(tmp_path, body)).result.status == "completed"


async def test_a_command_that_is_killed_keeps_its_output(tmp_path: Path) -> None:
    async def body(terminals: Terminals) -> None:
        terminal = await terminals.create("echo begun; sleep 1000")
        while "begun" not in (await terminals.output(terminal))["output"]:
            pass  # each request lets the other tasks run
        assert "exitStatus" not in await terminals.output(terminal)
        assert await terminals.ask(TerminalKillRequest(name="t", terminal_id=terminal)) == {}
        assert (await terminals.wait(terminal))["signal"] == "SIGKILL"
        assert "begun" in (await terminals.output(terminal))["output"]

    assert (await agent(tmp_path, body)).result.status == "completed"


@pytest.mark.parametrize("mode", ["default", "accept_edits"])
async def test_a_command_needs_permission(tmp_path: Path, mode: str) -> None:
    async def body(terminals: Terminals) -> None:
        code, _ = await terminals.ask(create("touch made"))
        assert code == -32001

    await agent(tmp_path, body, mode)
    assert os.listdir(tmp_path) == []  # noqa: PTH208


async def test_a_command_cannot_start_outside_of_the_directories_nor_without_a_program(
    tmp_path: Path,
) -> None:
    async def body(terminals: Terminals) -> None:
        code, message = await terminals.ask(create("pwd", cwd="/"))
        assert (code, message) == (-32001, "cwd: outside of the session's directories: /")
        code, message = await terminals.ask(create("no-such-program", "x"))
        assert code == -32602
        assert "no-such-program" in message
        code, _ = await terminals.ask(create("a\0b"))
        assert code == -32602

    assert (await agent(tmp_path, body)).result.status == "completed"


async def test_the_number_of_terminals_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_terminals, "MAX_TERMINALS", 1)

    async def body(terminals: Terminals) -> None:
        await terminals.create("true")
        code, message = await terminals.ask(create("true"))
        assert (code, message) == (-32001, "1 terminals are open; release some")

    assert (await agent(tmp_path, body)).result.status == "completed"


@pytest.mark.parametrize(
    ("told", "command", "args"),
    [
        ("echo hi", "echo hi", ()),
        ("echo hi", "/bin/bash", ("-c", "cd '{cwd}' && echo hi")),
        ("echo hi", "/bin/bash", ("-c", "cd . && echo hi")),
        ("echo hi", "echo", ("hi",)),
    ],
)
async def test_a_call_that_was_allowed_runs_its_command_without_a_second_question(
    tmp_path: Path, told: str, command: str, args: tuple[str, ...]
) -> None:
    asked: list[str] = []

    async def approve(question: ApprovalRequest) -> Decision:
        asked.append(question.tool_name)
        return Allow()

    async def script(it: Talk) -> None:
        session = session_of(await opening(it))
        call = ToolCallNews(tool_call_id="c", title="Bash", kind="execute")
        it.says(permission(session, call=call))
        assert chosen(await it.heard()) == "yes"
        # The input is reported after the answer.
        news = ToolCallNews(
            tool_call_id="c", status="in_progress", raw_input={"command": told, "timeout": 1}
        )
        it.says(update(session, news))
        terminals = Terminals(it)
        await terminals.create(command, *(each.format(cwd=tmp_path) for each in args))
        it.says(ended())

    await play(script, approve=approve, cwd=tmp_path)
    assert asked == ["Bash"]


def execute(told: str, **more: Any) -> ToolCallNews:
    return ToolCallNews(
        tool_call_id="c", title=told, kind="execute", raw_input={"command": told}, **more
    )


EDIT = ToolCallNews(
    tool_call_id="c",
    title="Write",
    kind="edit",
    raw_input={"path": "/bin/true"},
    locations=(ToolLocation(path="/bin/true"),),
)


@pytest.mark.parametrize(
    ("allowed", "later", "command"),
    [
        (execute("echo touch made"), None, "touch made"),
        (execute("echo x: touch made"), None, "touch made"),
        (execute("pwd"), None, "cd / && pwd"),
        (execute("pwd"), None, "cd $HOME && pwd"),
        (execute("pwd"), execute("touch made"), "touch made"),
        (execute("pwd"), execute("pwd", status="completed"), "pwd"),
        (EDIT, None, "/bin/true"),
        (replace(EDIT, kind="move"), None, "/bin/true"),
    ],
)
async def test_a_grant_serves_for_nothing_else(
    tmp_path: Path, allowed: ToolCallNews, later: ToolCallNews | None, command: str
) -> None:
    asked: list[str] = []

    async def approve(question: ApprovalRequest) -> Decision:
        asked.append(question.tool_name)
        return Allow() if len(asked) == 1 else Deny()

    async def script(it: Talk) -> None:
        session = session_of(await opening(it))
        it.says(permission(session, call=allowed))
        assert chosen(await it.heard()) == "yes"
        if later is not None:
            it.says(update(session, later))
        code, _ = await Terminals(it).ask(create(command))
        assert code == -32001
        it.says(ended())

    played = await play(script, approve=approve, cwd=tmp_path)
    assert played.result.status == "completed"
    assert asked[1:] == ["terminal"]


async def test_a_question_shows_the_variables_of_its_command(tmp_path: Path) -> None:
    asked: list[Any] = []

    async def approve(question: ApprovalRequest) -> Decision:
        asked.append(question.tool_input)
        return Deny()

    async def body(terminals: Terminals) -> None:
        await terminals.ask(create("ls", env=(AcpEnvVariable(name="PATH", value="/tmp"),)))

    await agent(tmp_path, body, "default", approve=approve)
    assert asked[0]["env"] == {"PATH": "/tmp"}


async def test_no_command_starts_once_the_run_is_cancelled(tmp_path: Path) -> None:
    codes: list[int] = []

    async def script(it: Talk) -> None:
        await opening(it)
        await it.gate("running")
        assert await it.heard() == INTERRUPTED
        terminals = Terminals(it)
        for each in (create("touch made"), write_of(tmp_path / "written")):
            code, _ = await terminals.ask(each)
            codes.append(code)
        it.says(ended("cancelled"))

    with trio.fail_after(30):
        async with manager_of(script) as (manager, sdk):
            session = await manager.open_session("acp", permission_mode="full_auto", cwd=tmp_path)
            run = await session.submit("hi", options={"command": ["x"]})
            await sdk.reached("running")
            run.cancel()
            sdk.open_gate("running")
            assert (await run.result()).status == "cancelled"
    assert codes == [-32001, -32001]
    assert os.listdir(tmp_path) == []  # noqa: PTH208


def write_of(path: Path) -> WriteFileRequest:
    return WriteFileRequest(name="t", path=str(path), content="x")


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_commands_end_with_the_run_also_if_it_is_cancelled(tmp_path: Path) -> None:
    pids: list[int] = []

    async def script(it: Talk) -> None:
        session = session_of(await opening(it))
        it.says(chunk(session, "x"))
        terminals = Terminals(it)
        terminal = await terminals.create("echo $$; trap '' TERM; while :; do sleep 1; done")
        while not (output := (await terminals.output(terminal))["output"]).endswith("\n"):
            pass  # each request lets the other tasks run
        pids.append(int(output))
        await it.gate("running")
        assert await it.heard() == INTERRUPTED
        it.says(ended("cancelled"))

    with trio.fail_after(30):
        async with manager_of(script) as (manager, sdk):
            session = await manager.open_session("acp", permission_mode="full_auto", cwd=tmp_path)
            run = await session.submit("hi", options={"command": ["x"]})
            await sdk.reached("running")
            assert is_alive(pids[0])
            run.cancel()
            sdk.open_gate("running")
            assert (await run.result()).status == "cancelled"
            assert not is_alive(pids[0])


async def test_a_character_that_is_read_in_two_parts_is_reported_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_terminals, "READ", 1)

    async def script(it: Talk) -> None:
        session = session_of(await opening(it))
        it.says(update(session, execute("printf é")))
        terminals = Terminals(it)
        terminal = await terminals.create("printf é")
        shown: tuple[Json, ...] = ({"type": "terminal", "terminalId": terminal},)
        it.says(update(session, ToolCallNews(tool_call_id="c", content=shown)))
        await terminals.wait(terminal)
        it.says(update(session, ToolCallNews(tool_call_id="c", status="completed")))
        it.says(ended())

    played = await play(script, mode="full_auto", cwd=tmp_path)
    [done] = played.of_type("tool_call_completed")
    assert done.tool_output == "é"
