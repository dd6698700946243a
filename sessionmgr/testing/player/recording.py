"""Recordings of what an agent and its adapter said to each other, and how they are played.

One JSON object a line: `t`, seconds since the start; `dir`, who spoke (`<` the agent, `>` the
adapter, `!` the agent on stderr, `#` whoever recorded it, about it); and `msg`, or `line` where it
was no JSON.
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
    """One line that was said."""

    t: float
    dir: Literal["<", ">", "!", "#"]
    msg: Json = None
    line: str | None = None
    note: str | None = None

    def data(self) -> bytes:
        """Return it as it was on the wire."""
        return line(self.msg) if self.line is None else self.line.encode() + b"\n"


class Recording(msgspec.Struct, frozen=True):
    """What was said, in its order."""

    entries: tuple[RecordedLine, ...]

    @staticmethod
    def read(path: Path) -> Recording:
        """Read a recording.

        Args:
            path: The file.

        Raises:
            msgspec.DecodeError: It is none.
        """
        decoder = msgspec.json.Decoder(RecordedLine)
        return Recording(tuple(decoder.decode_lines(path.read_bytes())))

    def playbook(self, *, timed: bool = False, free: Sequence[str] = ()) -> list[Step]:
        """Return the steps that play it, with the pauses that were recorded if `timed`.

        What the adapter says must be what it said, but for the names in `free`. The child waits
        for the end of its input when all is said.

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
    """Return the argv of a child that runs `argv` and records in `file` what is said.

    Args:
        file: The file for the recording.
        argv: The command to record.
    """
    return (sys.executable, "-I", "-S", PROGRAM, str(file), *argv)
