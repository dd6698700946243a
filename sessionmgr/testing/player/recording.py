"""Recordings of the traffic between an agent and its adapter, and their playbooks.

One JSON object a line: `t`, seconds since the start; `dir`, the direction (`<` from the agent, `>`
from the adapter, `!` from the agent's stderr, `#` a note about the recording); and `msg`, or `line`
where the line was not JSON.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from sessionmgr.model import Json
from sessionmgr.testing.player.playbook import ExpectStep, Step, UntilClosedStep, WriteStep, line

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM: Final = str(Path(__file__).with_name("recorder.py"))


class RecordedLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One recorded line."""

    t: float
    dir: Literal["<", ">", "!", "#"]
    msg: Json = None
    line: str | None = None
    note: str | None = None

    def data(self) -> bytes:
        """Return the line as it was on the wire."""
        return line(self.msg) if self.line is None else self.line.encode() + b"\n"


class Recording(msgspec.Struct, frozen=True):
    """The recorded lines, in order."""

    entries: tuple[RecordedLine, ...]

    @staticmethod
    def read(path: Path) -> Recording:
        """Read a recording.

        Args:
            path: The file.

        Raises:
            msgspec.DecodeError: The file is not a recording.
        """
        decoder = msgspec.json.Decoder(RecordedLine)
        return Recording(tuple(decoder.decode_lines(path.read_bytes())))

    def playbook(self, *, timed: bool = False, free: Sequence[str] = ()) -> list[Step]:
        """Return the steps that replay it, with the recorded pauses if `timed`.

        The adapter must send what it sent in the recording, except for the names in `free`. After
        the last line, the child waits for the end of its input.

        Args:
            timed: Whether the recorded pauses are kept.
            free: Names of fields in which the messages of the adapter may differ.
        """
        steps: list[Step] = []
        before = 0.0
        for entry in self.entries:
            pause = max(0.0, entry.t - before) if timed else 0.0
            before = entry.t
            match entry.dir:
                case "<":
                    steps.append(WriteStep(entry.data(), 1, pause, reply=True))
                case "!":
                    text = entry.msg if isinstance(entry.msg, str) else entry.line or ""
                    steps.append(WriteStep(text.encode() + b"\n", 2, pause))
                case ">":
                    steps.append(ExpectStep(entry.msg, tuple(free)))
                case "#":
                    pass
        return [*steps, UntilClosedStep()]


def recorder_of(file: Path, argv: Sequence[str]) -> tuple[str, ...]:
    """Return the argv of a child that runs `argv` and records its traffic in `file`.

    Args:
        file: The file for the recording.
        argv: The command to record.
    """
    return (sys.executable, "-I", "-S", PROGRAM, str(file), *argv)
