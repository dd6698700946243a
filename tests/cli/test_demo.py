"""The demo tells its story to whoever listens, and ends well."""

import io
import logging
import os
import re
import signal
import subprocess
import sys

import pytest
import trio

from sessionmgr.cli import demo
from sessionmgr.cli.narrator import Narrator, log_told_by, standard_output
from tests.cli.command import COMMAND, sessionmgr


def test_the_demo_tells_its_three_scenes_without_a_terminal() -> None:
    ran = sessionmgr("demo")
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    assert "Traceback" not in ran.stdout
    assert "\x1b" not in ran.stdout
    for word in ("1. ", "2. ", "3. ", "child_crashed", "child_restarted", "supervisor_gave_up"):
        assert word in ran.stdout
    assert "RestartIntensityExceeded" in ran.stdout
    assert ran.stdout.index("door        has closed") < ran.stdout.index("store       has closed")


def test_ctrl_c_during_the_demo_stops_it_in_order_with_exit_code_130() -> None:
    with subprocess.Popen(
        [*COMMAND, "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "comes to work" in line:
                process.send_signal(signal.SIGINT)
                break
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == ""
    assert "SIGINT" in out
    assert "2. " not in out


def test_a_reader_that_goes_away_ends_the_demo_quietly() -> None:
    with subprocess.Popen(
        [*COMMAND, "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        err = process.stderr.read()
        process.wait(timeout=60)
    assert process.returncode == 3
    assert err == ""


async def test_the_demo_takes_less_than_ten_seconds(autojump_clock: trio.testing.MockClock) -> None:
    out = io.StringIO()
    began = trio.current_time()
    assert await demo.perform(Narrator(out, clock=trio.current_time)) == 0
    assert trio.current_time() - began < 10
    assert "That was all" in out.getvalue()


async def test_what_the_scenes_start_is_stopped_in_reverse_order(
    autojump_clock: trio.testing.MockClock,
) -> None:
    out = io.StringIO()
    await demo.stops_in_order(Narrator(out, clock=trio.current_time))
    story = out.getvalue()
    assert re.findall(r"(\w+) +is up", story) == ["store", "reader", "writer", "door"]
    assert re.findall(r"(\w+) +has closed", story) == ["door", "writer", "reader", "store"]


def test_the_log_is_told_by_the_narrator_and_by_nobody_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    out = io.StringIO()
    logger = logging.getLogger("sessionmgr.test")
    with log_told_by(Narrator(out), "sessionmgr.test"):
        logger.info("event=told")
    logger.warning("event=as_before")
    assert "event=told" in out.getvalue()
    assert "event=as_before" not in out.getvalue()
    assert [record.getMessage() for record in caplog.records] == ["event=as_before"]


def test_what_stdout_cannot_encode_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    Narrator(standard_output()).show("└─ tree")
    assert raw.getvalue().endswith(b"?? tree\n")


def test_an_stdout_that_encodes_nothing_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    assert standard_output() is out


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no pseudo-terminals here")
def test_a_terminal_gets_colour_where_rich_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich", reason="rich is not installed: the extra `cli` has it")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in told_on_a_terminal()


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no pseudo-terminals here")
def test_a_terminal_without_rich_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert told_on_a_terminal() == "\r\n1. A title\r\n"


def told_on_a_terminal() -> str:
    ours, theirs = os.openpty()
    with (
        os.fdopen(ours, "rb", buffering=0) as reader,
        os.fdopen(theirs, "w", encoding="utf-8") as terminal,
    ):
        Narrator(terminal).title("1. A title")
        terminal.flush()
        heard = b""
        while b"title" not in heard or not heard.endswith(b"\n"):
            heard += reader.read(1024)
    return heard.decode()
