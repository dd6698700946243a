"""What a player does, step after step, as plain data that its program can read."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from sessionmgr.model import Json, encode_json

PROGRAM: Final = str(Path(__file__).with_name("program.py"))


class WriteStep(msgspec.Struct, frozen=True, tag_field="do", tag="write"):
    """Write bytes to stdout (1) or stderr (2), some seconds after the step before."""

    data: bytes
    stream: int = 1
    after: float = 0.0
    reply: bool = False
    """Put the id that was really heard in the place of the recorded one."""


class DribbleStep(msgspec.Struct, frozen=True, tag_field="do", tag="dribble"):
    """Write bytes a few at a time, wherever that cuts them."""

    data: bytes
    piece: int = 1
    pause: float = 0.001


class RepeatStep(msgspec.Struct, frozen=True, tag_field="do", tag="repeat"):
    """Write the same bytes again and again, as fast as they are read."""

    data: bytes
    times: int
    stream: int = 1


class GrowStep(msgspec.Struct, frozen=True, tag_field="do", tag="grow"):
    """Write a line so long that nobody wants to have it in a file: head, filling, tail."""

    head: bytes
    size: int
    tail: bytes


class ExpectStep(msgspec.Struct, frozen=True, tag_field="do", tag="expect"):
    """Wait for a line, which has to hold what `message` holds; names in `free` may differ.

    With another line the player ends at once, with exit code 70 and a complaint on stderr.
    """

    message: Json = None
    free: tuple[str, ...] = ()


class UntilClosedStep(msgspec.Struct, frozen=True, tag_field="do", tag="until_closed"):
    """Wait for the end of the input, whatever comes before it."""


class HangStep(msgspec.Struct, frozen=True, tag_field="do", tag="hang"):
    """Do nothing, not even at the end of the input; None is for ever."""

    seconds: float | None = None


class IgnoreStep(msgspec.Struct, frozen=True, tag_field="do", tag="ignore"):
    """Be deaf to signals."""

    signals: tuple[str, ...] = ("SIGTERM", "SIGINT", "SIGHUP")


class LeakStep(msgspec.Struct, frozen=True, tag_field="do", tag="leak"):
    """Leave a process behind: in a session of its own, with no pipe of ours, deaf to TERM.

    Its pid is written to the file `note`, if there is one, before the next step.
    """

    note: str = ""
    holds_pipes: bool = False


class CloseStep(msgspec.Struct, frozen=True, tag_field="do", tag="close"):
    """Close stdin (0), stdout (1) or stderr (2)."""

    stream: int


class ExitStep(msgspec.Struct, frozen=True, tag_field="do", tag="exit"):
    """Be gone; after the last step that is what comes, with code 0."""

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
    """Return the line that a message is on the wire."""
    return encode_json(message) + b"\n"


def command_of(playbook: Sequence[Step], file: Path) -> tuple[str, ...]:
    """Write a playbook to `file`, and return the argv of a child that plays it.

    Args:
        playbook: The steps that the child plays.
        file: The file for the playbook.
    """
    file.write_bytes(msgspec.json.encode(list(playbook)))
    return (sys.executable, "-I", "-S", PROGRAM, str(file))
