"""Details in the output about events, runs, snapshots and logs."""

import argparse
import json
import subprocess
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given

from sessionmgr.adapter import Budget
from sessionmgr.cli.config.configuration import load_configuration
from sessionmgr.cli.follow_up import arguments_from_settings
from sessionmgr.cli.terminal.event_line import LONGEST, event_line
from sessionmgr.cli.terminal.format_time import format_clock, parse_since
from sessionmgr.cli.terminal.safe_text import display_width
from sessionmgr.manager import Clocks
from sessionmgr.model import (
    AnyEvent,
    ErrorOccurred,
    Failure,
    FailureKind,
    MessageReceived,
    OutputReceived,
    ReasoningStreamed,
    ToolApprovalDenied,
    ToolCallUpdated,
    UnknownEvent,
)
from sessionmgr.testing.scripted_provider import Hang, Say
from sessionmgr.testing.strategies import events
from tests.cli.command import COMMAND, environment
from tests.cli.command_terminal import CommandTerminal
from tests.cli.stored_runs import open_run_owner, store_runs
from tests.manager.harness import run_scripted

AT = "2026-01-31T12:00:00.000Z"


@given(event=events())
def test_every_event_is_one_harmless_line(event: AnyEvent) -> None:
    line = event_line(event, now=0.0)
    assert not {unicodedata.category(character) for character in line} & {"Cc", "Cs"}
    assert display_width(line) <= LONGEST
    assert display_width(event_line(event, now=0.0, width=40)) <= 40


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (OutputReceived(stream="stderr", text="oops\n"), "stderr: oops"),
        (ReasoningStreamed(delta="hm"), "hm"),
        (ToolCallUpdated(tool_call_id="t", output_delta="more"), "more"),
        (
            ToolApprovalDenied(
                approval_id="apr_1", tool_name="rm", tool_input={"command": "rm x"}, by="mode"
            ),
            "rm rm x, by mode, apr_1",
        ),
        (
            ErrorOccurred(failure=Failure(kind=FailureKind.OVERLOADED, message="busy")),
            "error: overloaded: busy",
        ),
        (UnknownEvent(tag="of_tomorrow", body=b"{}"), ""),
    ],
)
def test_an_event_says_what_matters(event: AnyEvent, told: str) -> None:
    written = event.tag if isinstance(event, UnknownEvent) else event.type
    assert event_line(event, now=0.0).endswith(f"{written:<23}  {told}".rstrip())


def test_a_sub_agents_events_are_set_in() -> None:
    event = MessageReceived(content="x", parent_tool_call_id="t", at=AT)
    assert "  message_received" in event_line(event, now=0.0)


def test_moments_are_as_short_as_can_be() -> None:
    now = parse_since("--since", "2026-01-31T12:00:00", now=0.0)
    assert format_clock(now, now) == "12:00:00"
    assert format_clock(now - 5 * 86400, now) == "Jan 26 12:00"
    assert format_clock(now - 400 * 86400, now) == "2024-12-27"
    assert parse_since("--since", "2h", now) == now - 7200
    assert parse_since("--since", "1.5 d", now) == now - 129600


def test_what_flags_ask_for_is_wished_and_nothing_else(
    terminal: CommandTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SESSIONMGR_MODEL", "not asked for")
    given = argparse.Namespace(
        effort=["high"],
        permission_mode=["plan"],
        tools_allowed=["a,b"],
        tools_denied=["c"],
        max_turns=["3"],
        budget_usd=["2"],
        deadline=["60"],
        clocks=["idle=5"],
    )
    arguments = arguments_from_settings(load_configuration(given), "claude")
    assert arguments == {
        "effort": "high",
        "permission_mode": "plan",
        "tools_allowed": ("a", "b"),
        "tools_denied": ("c",),
        "max_turns": 3,
        "budget": Budget(usd=2.0),
        "clocks": Clocks(idle=5.0, deadline=60.0),
    }
    one = load_configuration(argparse.Namespace(model=["m"], set_defaults=["claude.model=n"]))
    assert arguments_from_settings(one, "claude") == {"model": "n"}
    assert arguments_from_settings(one, "codex") == {"model": "m"}


def test_a_snapshot_is_shown_with_the_way_on(terminal: CommandTerminal, tmp_path: Path) -> None:
    with open_run_owner(tmp_path, Say(text="ready"), Hang()) as owner:
        _, out, _ = terminal("pause", owner.run_id, "--node", "draft", "--json")
        snapshot = json.loads(out)["snapshot"]
    _, out, _ = terminal("show", snapshot)
    assert f"to continue   sessionmgr resume {snapshot}" in out
    assert "node          draft" in out
    _, out, _ = terminal("show", owner.session_id)
    assert f"snapshot      sessionmgr resume {snapshot}" in out


def test_a_log_file_is_the_users_alone(terminal: CommandTerminal) -> None:
    path = terminal.home / "log"
    code, _, _ = terminal("run", "-p", "shell", "echo x", "--log-file", str(path), "-v")
    assert code == 0
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_closed_stdout_is_no_error(terminal: CommandTerminal) -> None:
    store_runs(terminal.store, run_scripted(Say(text="x")))
    ran = subprocess.run(
        f"{' '.join(COMMAND)} sessions --store {terminal.store} >&- <&-",
        shell=True,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        check=False,
        env=environment(terminal.home),
        timeout=60,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
