"""A real agent as a plain child process, without adapter, manager or process tree."""

from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import PIPE
from typing import Any, TypeAlias

import msgspec
import trio

from sessionmgr.testing.player import recorder_of
from sessionmgr.wire import LineDecoder

Line: TypeAlias = dict[str, Any]

PATIENCE = 60.0
"""Time limit in seconds for each step, on a busy machine."""


class FinishedChild(msgspec.Struct, frozen=True):
    """The output and exit code of a child that has exited."""

    code: int
    lines: list[Line]
    stderr: str

    def of_type(self, *types: str) -> list[Line]:
        """Return the lines of these types."""
        return [line for line in self.lines if line.get("type") in types]


class LineConversation:
    """A child that exchanges lines of JSON with the test."""

    def __init__(self, process: trio.Process) -> None:
        self._process = process
        self._decoder = LineDecoder()
        self._waiting: deque[Line] = deque()
        self.heard: list[Line] = []
        """All lines received so far."""

    async def say(self, line: Line) -> None:
        """Send a line."""
        assert self._process.stdin is not None
        await self._process.stdin.send_all(msgspec.json.encode(line) + b"\n")

    async def until(self, wanted: Callable[[Line], bool]) -> Line:
        """Return the next wanted line; earlier ones are recorded too."""
        with trio.fail_after(PATIENCE):
            while True:
                line = await self._next()
                self.heard.append(line)
                if wanted(line):
                    return line

    async def _next(self) -> Line:
        assert self._process.stdout is not None
        await trio.lowlevel.checkpoint()
        while not self._waiting:
            data = await self._process.stdout.receive_some(64 << 10)
            assert data, f"it ended with {self._process.returncode}; it had said {self.heard}"
            for each in self._decoder.feed(data):
                assert isinstance(each, bytes)
                self._waiting.append(msgspec.json.decode(each))
        return self._waiting.popleft()

    async def until_type(self, kind: str) -> Line:
        """Return the next line of a type."""
        return await self.until(lambda line: line.get("type") == kind)

    async def close(self) -> int:
        """Close its input, and return the exit code."""
        assert self._process.stdin is not None
        await self._process.stdin.aclose()
        with trio.fail_after(PATIENCE):
            return await self._process.wait()


class AgentProgram:
    """An agent's program in an isolated environment."""

    def __init__(
        self,
        name: str,
        version: str,
        program: Path,
        environment: dict[str, str],
        work: Path,
        record: Path | None,
    ) -> None:
        self.name = name
        self.version = version
        self.program = program
        self.environment = environment
        self.work = work
        self.recorded: list[Path] = []
        self._record = record

    def argv(self, *flags: str) -> list[str]:
        """Return the command line, with a recorder in front if the test records."""
        argv = [str(self.program), *flags]
        if self._record is None:
            return argv
        file = self._record / f"recorded-{len(self.recorded)}.jsonl"
        self.recorded.append(file)
        return list(recorder_of(file, argv))

    async def run(self, *flags: str, stdin: bytes = b"") -> FinishedChild:
        """Run the program to its end."""
        with trio.fail_after(PATIENCE):
            done = await trio.run_process(
                self.argv(*flags),
                stdin=stdin,
                capture_stdout=True,
                capture_stderr=True,
                check=False,
                env=self.environment,
                cwd=self.work,
            )
        lines = [msgspec.json.decode(line) for line in done.stdout.splitlines() if line.strip()]
        return FinishedChild(done.returncode, lines, done.stderr.decode("utf-8", "replace"))

    @asynccontextmanager
    async def open(self, *flags: str) -> AsyncGenerator[LineConversation]:
        """Start the program for the length of the block, and exchange lines with it."""
        process = await trio.lowlevel.open_process(
            self.argv(*flags),
            stdin=PIPE,
            stdout=PIPE,
            stderr=None,
            env=self.environment,
            cwd=self.work,
        )
        try:
            yield LineConversation(process)
        finally:
            if process.returncode is None:
                process.terminate()
            with trio.move_on_after(10, shield=True):
                await process.wait()
            if process.returncode is None:
                process.kill()
                with trio.CancelScope(shield=True):
                    await process.wait()
