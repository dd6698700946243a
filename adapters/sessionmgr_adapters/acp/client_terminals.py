"""Commands that an agent runs through its client; they are our children, and end with the run."""

from __future__ import annotations

import codecs
import os
import re
import shlex
import signal
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.adapter import ApprovalRequest
from sessionmgr.adapter.kit import Future
from sessionmgr.process import Command, Escalation, ProcessError, build_environment, open_tree
from sessionmgr_adapters.acp import frames
from sessionmgr_adapters.acp.answers import terminal_created, terminal_exit, terminal_output
from sessionmgr_adapters.acp.client_requests import (
    DENIED,
    INVALID_PARAMS,
    NOT_FOUND,
    ClientRefusal,
)
from sessionmgr_adapters.acp.normalise import terminal_events

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessionmgr.adapter import RunContext
    from sessionmgr.adapter.kit import ConversationRun
    from sessionmgr.model import Json
    from sessionmgr.process import ChildTree
    from sessionmgr_adapters.acp.client_requests import GrantedCalls
    from sessionmgr_adapters.acp.frames import AcpFrame, TerminalCreateRequest, TerminalRequest
    from sessionmgr_adapters.acp.sdk import AcpOutgoing
    from sessionmgr_adapters.acp.state import AcpState

MAX_TERMINALS: Final = 32
MAX_OUTPUT_BYTES: Final = 1024 * 1024
LADDER: Final = Escalation(polite=0.0, term=0.2, linger=0.1)
_SHELL: Final = "/bin/sh"
_CHANGE_DIRECTORY: Final = re.compile(r"cd (?:'([^']*)'|([^'\s&;|$`~*?\\]+)) && ")
READ: Final = 64 * 1024
_utf8: Final = codecs.getincrementaldecoder("utf-8")
LAST_OUTPUT: Final = 0.5
"""Seconds to read on after the command has ended."""


class _Terminal:
    """One command: its tree, its last output, and its end."""

    def __init__(self, limit: int, report: Callable[[str], None]) -> None:
        self._report: Final = report
        """Called with new output."""
        self.started: Final = Future[ProcessError | None]()
        self.ended: Final = trio.Event()
        self.code: int | None = None
        self.signal: str | None = None
        self.is_truncated = False
        self.scope: Final = trio.CancelScope()
        """Its cancellation ends the command."""
        self._limit: Final = limit
        self._output: Final = bytearray()
        self._tree: ChildTree | None = None

    async def run(self, run: RunContext, command: Command) -> None:
        """Start the command, and collect its output until it has ended."""
        try:
            with self.scope:
                async with open_tree(run.launcher, command, escalation=LADDER) as tree:
                    self._tree = tree
                    self.started.set(None)
                    await self._serve(run, tree)
        except ProcessError as error:
            self.started.set(error)
        finally:
            self.ended.set()

    def kill(self) -> None:
        """End the command; its output stays available."""
        if self._tree is not None and not self.ended.is_set():
            self._tree.kill()

    @property
    def text(self) -> str:
        """The output that is kept."""
        return bytes(self._output).decode(errors="ignore")

    async def _serve(self, run: RunContext, tree: ChildTree) -> None:
        async with trio.open_nursery() as nursery:
            for stream in (tree.stdout, tree.stderr):
                nursery.start_soon(self._collect, run, stream)
            found = await tree.wait_exit()
            # Something that the command has started may hold its pipes open.
            nursery.cancel_scope.deadline = trio.current_time() + LAST_OUTPUT
        self.code = found.exit_code
        if found.signal is not None:
            self.signal = signal.Signals(found.signal).name

    async def _collect(self, run: RunContext, stream: trio.abc.ReceiveStream) -> None:
        decoder = _utf8(errors="replace")  # a read may end within a character
        while data := await stream.receive_some(READ):
            self._output.extend(data)
            self._report(decoder.decode(bytes(data)))
            surplus = len(self._output) - self._limit
            if surplus > 0:
                self.is_truncated = True
                del self._output[:surplus]
            await run.room()


class ClientTerminals:
    """The commands of one run."""

    def __init__(
        self,
        driver: ConversationRun[AcpOutgoing, AcpFrame],
        state: AcpState,
        granted: GrantedCalls,
    ) -> None:
        self._driver: Final = driver
        self._run: Final = driver.run
        self._state: Final = state
        self._granted: Final = granted
        self._terminals: Final[dict[str, _Terminal]] = {}
        self._last = 0

    async def create(self, request: TerminalCreateRequest) -> Json:
        """Start a command, if the permission mode or the caller allows it.

        Raises:
            ClientRefusal: It was denied, its directory is outside of the session, or it could not
                be started.
        """
        command = self._command(request)
        line = _command_line(request)
        shown: dict[str, Json] = {"command": shlex.join(command.argv), "cwd": command.cwd}
        if request.env:
            shown["env"] = {each.name: each.value for each in request.env}
        question = ApprovalRequest(tool_name="terminal", tool_input=shown, effect="command")
        await self._granted.require(question, line, self._without_change(line, command.cwd))
        if len(self._terminals) >= MAX_TERMINALS:
            raise ClientRefusal(DENIED, f"{MAX_TERMINALS} terminals are open; release some")
        wanted = request.output_byte_limit
        limit = MAX_OUTPUT_BYTES if wanted is None else min(max(wanted, 0), MAX_OUTPUT_BYTES)
        self._last += 1
        name = f"terminal-{self._last}"
        terminal = _Terminal(limit, partial(self._report, name))
        self._driver.start(terminal.run, self._run, command)
        error = await terminal.started.wait()
        if error is not None:
            raise ClientRefusal(INVALID_PARAMS, str(error))
        self._terminals[name] = terminal
        return terminal_created(name)

    async def handle(self, request: TerminalRequest) -> Json:
        """Answer a request about a command that was started.

        Raises:
            ClientRefusal: There is no such terminal.
        """
        await trio.lowlevel.checkpoint()
        terminal = self._terminals.get(request.terminal_id)
        if terminal is None:
            raise ClientRefusal(NOT_FOUND, f"terminalId: no such terminal: {request.terminal_id}")
        match request:
            case frames.TerminalOutputRequest():
                exit_ = terminal_exit(terminal.code, terminal.signal)
                status = exit_ if terminal.ended.is_set() else None
                return terminal_output(
                    terminal.text, truncated=terminal.is_truncated, exit_status=status
                )
            case frames.TerminalWaitRequest():
                await terminal.ended.wait()
                return terminal_exit(terminal.code, terminal.signal)
            case frames.TerminalReleaseRequest():
                terminal.scope.cancel()
                del self._terminals[request.terminal_id]
            case _:
                terminal.kill()
        return {}

    def _report(self, name: str, text: str) -> None:
        self._driver.emit(*terminal_events(name, text, self._state))

    def _without_change(self, line: str, cwd: str) -> str:
        """Return a command line without a change to a directory of the session before it."""
        found = _CHANGE_DIRECTORY.match(line)
        if found is None or not self._is_inside(os.path.join(cwd, found[1] or found[2])):  # noqa: PTH118
            return line
        return line[found.end() :]

    def _is_inside(self, directory: str) -> bool:
        real = PurePath(os.path.realpath(directory))
        directories = self._granted.directories
        return any(real.is_relative_to(os.path.realpath(each)) for each in directories)

    def _command(self, request: TerminalCreateRequest) -> Command:
        """Return the command: a line for the shell, if there are no arguments."""
        given = {each.name: each.value for each in request.env}
        cwd = request.cwd or self._run.cwd
        real = os.path.realpath(cwd)
        if not self._is_inside(real):
            raise ClientRefusal(DENIED, f"cwd: outside of the session's directories: {cwd}")
        argv = (request.command, *request.args)
        if not request.args:
            argv = (_SHELL, "-c", request.command)
        try:
            # The agent's own variables, such as its keys, are not for its commands.
            env = build_environment(self._run.env, None, given)
            return Command(argv=argv, cwd=real, env=env, stdin=False)
        except ProcessError as error:
            raise ClientRefusal(INVALID_PARAMS, str(error)) from None


def _command_line(request: TerminalCreateRequest) -> str:
    """Return a command as an agent names it in its question: without the shell that runs it."""
    if len(request.args) == 2 and request.args[0] in ("-c", "-lc"):
        return request.args[1]
    return shlex.join((request.command, *request.args)) if request.args else request.command
