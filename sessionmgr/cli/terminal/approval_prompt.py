"""Approval requests on the terminal.

A line is read with the terminal's settings unchanged, so that nothing has to be restored if the
process is killed. One question is asked at a time; its time limit runs from the agent's request.
"""

from __future__ import annotations

import os
import sys
import termios
import time
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.adapter import Allow, Deny
from sessionmgr.cli.terminal.format import format_duration
from sessionmgr.cli.terminal.safe_text import escape_controls, one_line
from sessionmgr.model import encode_json

if TYPE_CHECKING:
    from sessionmgr.adapter import ApprovalRequest, Decision
    from sessionmgr.model import Json

CHOICES: Final = "[y]es, [n]o, [a]lways this tool, [s]top the run"
_MOST_LINES: Final = 40
# The fields of a tool's input that contain the command and its directory.
_RUN: Final = frozenset({"command", "cmd", "script", "argv", "args", "cwd"})
_LINE: Final = 4096


class ApprovalPrompt:
    """Approver that asks at the terminal; `patience` is the time limit of an answer in seconds."""

    def __init__(self, fd: int, patience: float) -> None:
        self._fd: Final = fd
        self._patience: Final = patience
        self._one_at_a_time: Final = trio.Lock()
        self._always: Final = set[str]()

    async def approve(self, request: ApprovalRequest) -> Decision:
        """Ask the user and return the answer; no answer is a denial."""
        asked_at = trio.current_time()
        async with self._one_at_a_time:
            if request.tool_name in self._always:
                return Allow(reason="always")
            left = self._patience - (trio.current_time() - asked_at) if self._patience else None
            try:
                return await self._ask(request, left)
            except trio.Cancelled:
                # This is not written in a thread: it is one line, and the question is over.
                self._print("(the request has ended)\n")
                raise

    async def _ask(self, request: ApprovalRequest, left: float | None) -> Decision:
        termios.tcflush(
            self._fd, termios.TCIFLUSH
        )  # discard input that was typed before the question
        await self._print_lines(question_text(request, left, time.time()))
        while True:
            line = await self._read_line()
            if line is None:
                return Deny(reason="the terminal is closed", by="default")
            match line.strip().lower():
                case "y" | "yes":
                    return Allow()
                case "n" | "no":
                    return Deny(reason="denied by the user")
                case "a" | "always":
                    self._always.add(request.tool_name)
                    return Allow(reason="always")
                case "s" | "stop":
                    return Deny(reason="denied by the user, who also stopped the run", stop=True)
                case _:
                    await self._print_lines(f"  {CHOICES}? ")

    async def _read_line(self) -> str | None:
        """Return a typed line; None if the terminal cannot be read any more."""
        await trio.lowlevel.wait_readable(self._fd)
        try:
            if os.tcgetpgrp(self._fd) != os.getpgrp():
                return None  # reading in the background would stop this process
            read = os.read(self._fd, _LINE)
        except OSError:
            return None
        return read.decode(errors="replace") if read else None

    async def _print_lines(self, text: str) -> None:
        await trio.to_thread.run_sync(self._print, text, abandon_on_cancel=True)

    def _print(self, text: str) -> None:
        try:
            os.write(self._fd, text.encode(errors="replace"))
        except OSError:
            return  # the terminal is gone; reading it reports that


def open_terminal() -> int | None:
    """Return a descriptor of the terminal at which a user can be asked, if there is one.

    If neither stdin nor stderr is a terminal, another program started this one: no user is asked.
    """
    if not any(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr)):
        return None
    try:
        fd = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
    if os.tcgetpgrp(fd) == os.getpgrp():
        return fd
    os.close(fd)  # in the background
    return None


def question_text(request: ApprovalRequest, left: float | None, now: float) -> str:
    """Return the question: the tool's whole input, and the time limit."""
    lines = [f"? {one_line(request.provider)} asks to use {_on_one_line(request.tool_name)}"]
    lines += [f"    {line}" for line in _input_lines(request.tool_input)]
    if request.reason:
        lines.append(f"  because: {_on_one_line(request.reason)}")
    if left is not None:
        until = time.strftime("%H:%M:%S", time.localtime(now + left))
        lines.append(f"  denied without an answer within {format_duration(left)} (at {until})")
    return "\n".join(["", *lines, f"  {CHOICES}? "])


def _on_one_line(text: str) -> str:
    return one_line(escape_controls(text))


def _input_lines(tool_input: Json) -> list[str]:
    """Return a tool's whole input as lines: the user must see what they allow.

    The command and its directory are never cut; a very long file is cut with a note of the
    omitted size.
    """
    whole: list[str] = []
    match tool_input:
        case None:
            return []
        case str():
            lines = tool_input.splitlines()
        case dict():
            runs = {key: value for key, value in tool_input.items() if key in _RUN}
            whole = [line for key, value in runs.items() for line in _field(key, value)]
            others = (pair for pair in tool_input.items() if pair[0] not in runs)
            lines = [line for key, value in others for line in _field(key, value)]
        case _:
            lines = [encode_json(tool_input).decode()]
    if len(lines) > _MOST_LINES:
        left_out = len(lines) - _MOST_LINES
        lines = [*lines[:_MOST_LINES], f"… and {left_out} more lines"]
    return [escape_controls(line).replace("\n", " ") for line in (*whole, *lines)]


def _field(key: str, value: Json) -> list[str]:
    said = value if isinstance(value, str) else encode_json(value).decode()
    first, *more = said.splitlines() or [""]
    return [f"{key}: {first}", *(f"  {line}" for line in more)]
