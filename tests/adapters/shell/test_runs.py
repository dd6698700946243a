"""Commands run through the manager, on real processes."""

import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from sessionmgr.adapter import OptionInvalid, PermissionRefused
from sessionmgr.adapter.kit.stdio_child import LAST_MOMENTS
from sessionmgr.manager import Clocks, Manager, open_manager
from sessionmgr.model import (
    AnyEvent,
    EndReason,
    ErrorOccurred,
    FailureKind,
    Json,
    MessageReceived,
    MessageStreamed,
    OutputReceived,
    PermissionMode,
    ProcessExited,
    RunResult,
    RunStatus,
    ToolCallCompleted,
    ToolCallFailed,
)
from sessionmgr_adapters.shell import ShellAdapter, ShellOptions, normalise

FAIL_AFTER = 60.0

Outcome: TypeAlias = tuple[RunResult, list[AnyEvent]]
Do: TypeAlias = Callable[..., Awaitable[Outcome]]


@pytest.fixture
async def manager() -> AsyncGenerator[Manager, None]:
    with trio.fail_after(FAIL_AFTER):
        async with open_manager(adapters={"shell": ShellAdapter}) as opened:
            yield opened


@pytest.fixture
def do(manager: Manager, tmp_path: Path) -> Do:
    async def run_one(prompt: str, mode: str = "default", **options: Json) -> Outcome:
        session = await manager.open_session(
            "shell", cwd=tmp_path, permission_mode=PermissionMode(mode)
        )
        async with session.start(prompt, options=options) as run:
            events = [event async for event in run]
            return await run.result(), events

    return run_one


def kinds(events: list[AnyEvent]) -> list[str]:
    return [each.type for each in events if each.type not in {"session_created", "message_sent"}]


def python(program: str) -> str:
    return f"{sys.executable} -c '{program}'"


async def test_a_command_is_told_from_its_start_to_its_end(do: Do) -> None:
    result, events = await do("echo hello")
    assert kinds(events) == [
        "run_started",
        "tool_call_started",
        "message_streamed",
        "tool_call_completed",
        "message_received",
        "process_exited",
        "run_completed",
    ]
    assert (result.status, result.text, result.exit_code) == (RunStatus.COMPLETED, "hello\n", 0)
    assert result.tool_calls.count == {"bash": 1}
    (exited,) = (each for each in events if isinstance(each, ProcessExited))
    assert exited.emptied is (True if sys.platform == "linux" else None)


async def test_without_a_shell_quoted_operators_are_text(do: Do) -> None:
    result, _ = await do("echo 'ok; id -u'")
    assert result.text == "ok; id -u\n"


async def test_without_a_shell_an_unquoted_operator_runs_nothing(do: Do) -> None:
    result, _ = await do("echo ok; id -u")
    assert (result.status, result.text) == (RunStatus.FAILED, "")
    assert result.failure is not None
    assert result.failure.kind is FailureKind.CONFIG_INVALID
    assert "the unquoted ; needs a shell" in result.failure.message


async def test_the_failure_of_a_long_command_does_not_repeat_it(do: Do) -> None:
    result, _ = await do("y" * 1_000_000)
    assert result.failure is not None
    assert len(result.failure.message) < 1000


async def test_with_a_shell_the_prompt_is_a_script(do: Do) -> None:
    result, _ = await do("echo a; echo b", shell=True)
    assert result.text == "a\nb\n"


async def test_an_exit_code_other_than_0_is_a_failed_run_in_events_and_result(do: Do) -> None:
    result, events = await do("echo out; echo bad >&2; exit 7", shell=True)
    assert kinds(events)[-5:] == [
        "tool_call_failed",
        "error_occurred",
        "message_received",
        "process_exited",
        "run_failed",
    ]
    assert result.status is RunStatus.FAILED
    assert result.text == "out\n"
    assert result.failure is not None
    assert result.failure.kind is FailureKind.PROCESS_EXITED
    assert (result.failure.exit_code, result.failure.stderr_tail) == (7, "bad")
    (failed,) = (each for each in events if isinstance(each, ToolCallFailed))
    assert failed.tool_output == {"exit_code": 7, "signal": None, "stderr": "bad\n"}
    assert result.exit_code == 7


async def test_other_exit_codes_may_be_success(do: Do) -> None:
    result, _ = await do("sh -c 'exit 7'", success_exit_codes=[0, 7])
    assert (result.status, result.exit_code) == (RunStatus.COMPLETED, 7)
    result, _ = await do("true", success_exit_codes=[7])
    assert result.status is RunStatus.FAILED


async def test_a_command_that_kills_itself_has_failed(do: Do) -> None:
    result, events = await do("kill -SEGV $$", shell=True)
    assert result.status is RunStatus.FAILED
    assert result.failure is not None
    assert "SIGSEGV" in result.failure.message
    (exited,) = (each for each in events if isinstance(each, ProcessExited))
    assert exited.signal == signal.SIGSEGV


async def test_at_its_timeout_a_run_is_timed_out_and_keeps_what_it_said(
    mock_clock: MockClock, manager: Manager, tmp_path: Path
) -> None:
    mock_clock.rate = (
        1.0  # the child is real; its time limit is checked once its output has arrived
    )
    session = await manager.open_session("shell", cwd=tmp_path)
    options: dict[str, Json] = {"shell": True, "timeout": FAIL_AFTER / 2}
    events: list[AnyEvent] = []
    async with session.start("echo partial; sleep 1000", options=options) as run:
        async for event in run:
            events.append(event)
            if isinstance(event, MessageStreamed):
                mock_clock.jump(FAIL_AFTER / 2)
        result = await run.result()
    assert (result.status, result.reason) == (RunStatus.TIMED_OUT, EndReason.DEADLINE)
    assert result.text == "partial\n"
    (occurred,) = (each for each in events if isinstance(each, ErrorOccurred))
    assert occurred.failure is not None
    assert occurred.failure.kind is FailureKind.TIMED_OUT
    assert kinds(events)[-1] == "run_timed_out"
    order = [kinds(events).index(each) for each in ("tool_call_failed", "error_occurred")]
    assert order == sorted(order)


async def test_a_command_deaf_to_term_is_killed_within_the_grace(
    manager: Manager, tmp_path: Path
) -> None:
    session = await manager.open_session("shell", cwd=tmp_path, clocks=Clocks(close=2.0))
    script = "trap '' TERM; echo partial; while :; do sleep 0.05; done"
    types: list[str] = []
    async with session.start(script, options={"shell": True}) as run:
        async for event in run:
            types.append(event.type)
            if isinstance(event, MessageStreamed):
                run.cancel("enough")
        result = await run.result()
    assert (result.status, result.reason) == (RunStatus.CANCELLED, EndReason.USER)
    assert (result.detail, result.text) == ("enough", "partial\n")
    assert "stall_suspected" not in types


async def test_a_cancelled_command_leaves_nothing_behind(manager: Manager, tmp_path: Path) -> None:
    """Even a process that has its own session and has closed all inherited files is ended."""
    program = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        '    open("pid", "w").write(str(os.getpid()))\n'
        "    os.closerange(0, 100)\n"
        "    time.sleep(1000)\n"
        'while not os.path.exists("pid") or not open("pid").read(): time.sleep(0.01)\n'
        'print("ready", flush=True)\n'
        "time.sleep(1000)"
    )
    session = await manager.open_session("shell", cwd=tmp_path)
    async with session.start(python(program)) as run:
        async for event in run:
            if isinstance(event, MessageStreamed):
                run.cancel()
        result = await run.result()
    assert result.status is RunStatus.CANCELLED
    assert result.text == "ready\n"
    pid = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_what_a_command_leaves_in_the_background_ends_with_it(do: Do, tmp_path: Path) -> None:
    result, _ = await do("sleep 1000 & echo $! > pid; echo done", shell=True)
    assert (result.status, result.text) == (RunStatus.COMPLETED, "done\n")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


async def test_a_run_cancelled_before_its_command_starts_ends_at_once(
    manager: Manager, tmp_path: Path
) -> None:
    session = await manager.open_session("shell", cwd=tmp_path)
    run = await session.submit("sleep 1000")
    run.cancel()
    result = await run.result()
    assert result.status is RunStatus.CANCELLED


async def test_blank_lines_and_cut_characters_come_whole(do: Do) -> None:
    program = (
        "import os, time\n"
        'for each in (b"a\\n\\n\\xc3", b"\\xa9\\r\\n", b"\\xff\\xe2\\x82"):\n'
        "    os.write(1, each); time.sleep(0.05)"
    )
    result, events = await do(python(program))
    assert result.text == "a\n\né\r\n��"
    streamed = "".join(each.delta for each in events if isinstance(each, MessageStreamed))
    (whole,) = (each for each in events if isinstance(each, MessageReceived))
    assert streamed == whole.content == result.text


async def test_of_a_flood_as_much_as_may_be_is_kept_and_the_rest_counted(
    do: Do, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(normalise.OutputStream.__init__, "__defaults__", (1000,))
    result, events = await do(python('print("x" * 5000)'))
    assert result.text == "x" * 1000
    (warning,) = (each for each in events if isinstance(each, ErrorOccurred))
    assert "the last 4001 bytes" in warning.failure.message
    assert result.status is RunStatus.COMPLETED


async def test_a_command_that_has_closed_its_output_goes_on(
    mock_clock: MockClock, manager: Manager, tmp_path: Path
) -> None:
    mock_clock.rate = 1.0
    session = await manager.open_session("shell", cwd=tmp_path)
    script = "exec >&-; echo closed >&2; until [ -e go ]; do sleep 0.05; done; exit 7"
    async with session.start(script, options={"shell": True}) as run:
        async for event in run:
            if isinstance(event, OutputReceived):
                await wait_all_tasks_blocked()
                mock_clock.jump(2 * LAST_MOMENTS)
                await wait_all_tasks_blocked()
                (tmp_path / "go").touch()
        assert (await run.result()).exit_code == 7


async def test_there_is_nothing_on_its_stdin(do: Do) -> None:
    result, _ = await do("cat")
    assert (result.status, result.text) == (RunStatus.COMPLETED, "")


async def test_it_starts_where_it_is_told_and_with_what_it_is_given(do: Do, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    program = 'import os, json; print(json.dumps([os.getcwd(), os.environ["COLOUR"]]))'
    result, _ = await do(python(program), cwd="sub", env={"COLOUR": "red"})
    assert json.loads(result.text) == [str(tmp_path / "sub"), "red"]


@pytest.mark.parametrize(
    ("prompt", "options", "kind"),
    [
        ("no-such-program", {}, FailureKind.CONFIG_INVALID),
        ("./plain", {}, FailureKind.START_FAILED),
        ("echo 'a", {}, FailureKind.CONFIG_INVALID),
        ("''", {}, FailureKind.CONFIG_INVALID),
        ("echo a\0b", {}, FailureKind.CONFIG_INVALID),
        ("echo", {"cwd": "nowhere"}, FailureKind.CONFIG_INVALID),
        ("id", {"allowed_commands": ["echo"]}, FailureKind.PERMISSION_REFUSED),
        ("echo", {"denied_commands": ["echo"]}, FailureKind.PERMISSION_REFUSED),
        ("echo a\0b", {"denied_commands": ["id"]}, FailureKind.CONFIG_INVALID),
        ("a\0b", {"denied_commands": ["id"]}, FailureKind.CONFIG_INVALID),
    ],
)
async def test_what_cannot_be_started_has_failed_and_says_why(
    do: Do, tmp_path: Path, prompt: str, options: dict[str, Json], kind: FailureKind
) -> None:
    (tmp_path / "plain").write_text("no program")
    result, events = await do(prompt, **options)
    assert kinds(events)[0] == "run_started"
    assert kinds(events)[-2:] == ["tool_call_failed", "run_failed"]
    assert result.failure is not None
    assert (result.failure.kind, result.failure.phase) == (kind, "start")


async def test_a_refused_command_is_a_denial_in_the_result(do: Do) -> None:
    result, events = await do("env id", denied_commands=["id"])
    assert "tool_approval_denied" in kinds(events)
    (denial,) = result.permission_denials
    assert (denial.tool_name, denial.by) == ("bash", "options")
    assert (result.tool_calls.denied, result.tool_calls.failed) == (1, 0)


async def test_the_list_of_the_allowed_is_what_default_means(do: Do) -> None:
    for mode, status in (
        ("default", RunStatus.FAILED),
        ("full_auto", RunStatus.COMPLETED),
        ("dangerously_skip_permissions", RunStatus.COMPLETED),
    ):
        result, _ = await do("true", mode, allowed_commands=["echo"])
        assert result.status is status, mode
        assert result.permission is not None
        assert result.permission.confined is False


@pytest.mark.parametrize("mode", ["default", "full_auto", "dangerously_skip_permissions"])
async def test_what_is_denied_runs_in_no_mode(do: Do, mode: str) -> None:
    result, _ = await do("true", mode, denied_commands=["true"])
    assert result.failure is not None
    assert result.failure.kind is FailureKind.PERMISSION_REFUSED


@pytest.mark.parametrize("mode", ["accept_edits", "plan"])
async def test_modes_that_a_command_cannot_keep_are_refused(do: Do, mode: str) -> None:
    with pytest.raises(PermissionRefused, match="default, full_auto"):
        await do("true", mode)


@pytest.mark.parametrize(
    "options",
    [
        {"timeout": 0},
        {"timeout": "soon"},
        {"allowed_commands": ["git status"]},
        {"denied_commands": [""]},
        {"time_out": 3},
    ],
)
async def test_options_that_make_no_sense_are_refused(do: Do, options: dict[str, Json]) -> None:
    with pytest.raises(OptionInvalid):
        await do("true", **options)


async def test_no_timeout_is_no_limit(do: Do) -> None:
    result, _ = await do("true", timeout=None)
    assert result.status is RunStatus.COMPLETED


async def test_many_commands_at_once_are_each_their_own(manager: Manager, tmp_path: Path) -> None:
    results: dict[int, str] = {}

    async def one(number: int) -> None:
        session = await manager.open_session("shell", cwd=tmp_path)
        async with session.start(f"echo {number}") as run:
            results[number] = (await run.result()).text

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(one, number)
    assert results == {number: f"{number}\n" for number in range(20)}


@pytest.mark.parametrize("timeout", ["soon", "0", "-3", ""])
def test_a_timeout_that_is_no_duration_is_refused_with_its_value(timeout: str) -> None:
    with pytest.raises(ValueError, match=f"timeout: expected a duration like .*, got '{timeout}'"):
        ShellOptions(timeout=timeout)


def test_a_timeout_may_be_written_with_its_unit() -> None:
    assert ShellOptions(timeout="2m").limit == 120.0
    assert ShellOptions(timeout=None).limit is None


async def test_the_end_of_a_secret_that_the_tail_of_stderr_would_cut_is_not_stored(do: Do) -> None:
    secret = "Tr0ub4dor-and-3-more-words"
    program = 'import os, sys; sys.stderr.write(os.environ["API_KEY"] + "y" * (65536 - 8))'
    _, events = await do(python(program), mode="full_auto", env={"API_KEY": secret})
    (ended,) = [each for each in events if isinstance(each, ToolCallCompleted)]
    assert isinstance(ended.tool_output, dict)
    kept = ended.tool_output["stderr"]
    assert isinstance(kept, str)
    assert (kept[:8], set(kept[8:]), len(kept)) == ("edacted]", {"y"}, 65536)
