"""The steps of a player, as plain data that its program can read."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from sessionmgr.model import Json, encode_json

PROGRAM: Final = str(Path(__file__).with_name("program.py"))


class WriteStep(msgspec.Struct, frozen=True, tag_field="do", tag="write"):
    """Write bytes to stdout (1) or stderr (2), some seconds after the previous step."""

    data: bytes
    stream: int = 1
    after: float = 0.0
    reply: bool = False
    """Replace the recorded id by the one that was received."""


class DribbleStep(msgspec.Struct, frozen=True, tag_field="do", tag="dribble"):
    """Write bytes a few at a time, cutting frames and characters."""

    data: bytes
    piece: int = 1
    pause: float = 0.001


class RepeatStep(msgspec.Struct, frozen=True, tag_field="do", tag="repeat"):
    """Write the same bytes repeatedly, as fast as they are read."""

    data: bytes
    times: int
    stream: int = 1


class GrowStep(msgspec.Struct, frozen=True, tag_field="do", tag="grow"):
    """Write a very long line, made from a head, a filling and a tail."""

    head: bytes
    size: int
    tail: bytes


class ExpectStep(msgspec.Struct, frozen=True, tag_field="do", tag="expect"):
    """Wait for a line that contains the members of `message`; names in `free` may differ.

    With another line the player ends at once, with exit code 70 and an error on stderr.
    """

    message: Json = None
    free: tuple[str, ...] = ()


class UntilClosedStep(msgspec.Struct, frozen=True, tag_field="do", tag="until_closed"):
    """Read to the end of the input, ignoring its contents."""


class HangStep(msgspec.Struct, frozen=True, tag_field="do", tag="hang"):
    """Wait, even beyond the end of the input; None is for ever."""

    seconds: float | None = None


class IgnoreStep(msgspec.Struct, frozen=True, tag_field="do", tag="ignore"):
    """Ignore signals."""

    signals: tuple[str, ...] = ("SIGTERM", "SIGINT", "SIGHUP")


class LeakStep(msgspec.Struct, frozen=True, tag_field="do", tag="leak"):
    """Start a process that stays behind, in a session of its own, without our pipes, ignoring TERM.

    Its pid is written to the file `note`, if there is one, before the next step.
    """

    note: str = ""
    holds_pipes: bool = False


class CloseStep(msgspec.Struct, frozen=True, tag_field="do", tag="close"):
    """Close stdin (0), stdout (1) or stderr (2)."""

    stream: int


class ExitStep(msgspec.Struct, frozen=True, tag_field="do", tag="exit"):
    """Exit. The end of a playbook is an exit with code 0."""

    code: int = 0


Step: TypeAlias = (
    WriteStep
    | DribbleStep
    | RepeatStep
    | GrowStep
    | ExpectStep
    | UntilClosedStep
    | HangStep
    | IgnoreStep
    | LeakStep
    | CloseStep
    | ExitStep
)


def line(message: Json | msgspec.Struct) -> bytes:
    """Return the line of a message on the wire."""
    return encode_json(message) + b"\n"


def command_of(playbook: Sequence[Step], file: Path) -> tuple[str, ...]:
    """Write a playbook to `file`, and return the argv of a child that plays it.

    Args:
        playbook: The steps that the child plays.
        file: The file for the playbook.
    """
    file.write_bytes(msgspec.json.encode(list(playbook)))
    return (sys.executable, "-I", "-S", PROGRAM, str(file))
