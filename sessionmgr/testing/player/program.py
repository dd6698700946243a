"""The player's program: a child process that executes the steps of a playbook.

    python program.py PLAYBOOK.json

This file needs the standard library only.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, Final, cast

WRONG: Final = 70
"""The exit code after a line that differs from the playbook."""


class PlaybookPlayer:
    """Plays one playbook."""

    def __init__(self) -> None:
        self.heard = b""
        self.ids: dict[str, Any] = {}

    def play(self, steps: list[dict[str, Any]]) -> None:
        """Play all steps."""
        for step in steps:
            getattr(self, step.pop("do"))(**step)

    def write(self, data: str, stream: int = 1, after: float = 0.0, *, reply: bool = False) -> None:
        """Write bytes."""
        time.sleep(after)
        text = base64.b64decode(data)
        put(stream, self.with_id(text) if reply else text)

    def dribble(self, data: str, piece: int = 1, pause: float = 0.001) -> None:
        """Write bytes a few at a time."""
        text = base64.b64decode(data)
        for at in range(0, len(text), piece):
            put(1, text[at : at + piece])
            time.sleep(pause)

    def repeat(self, data: str, times: int, stream: int = 1) -> None:
        """Write the same bytes repeatedly."""
        text = base64.b64decode(data)
        at_once = max(1, 65536 // max(1, len(text)))
        while times > 0:
            put(stream, text * min(at_once, times))
            times -= at_once

    def grow(self, head: str, size: int, tail: str) -> None:
        """Write a very long line."""
        put(1, base64.b64decode(head))
        while size > 0:
            put(1, b"x" * min(size, 1 << 20))
            size -= 1 << 20
        put(1, base64.b64decode(tail))

    def expect(self, message: Any = None, free: list[str] | None = None) -> None:
        """Wait for a line, and compare it."""
        line = self.line()
        if line is None:
            exit_with_error(f"expected {message!r}, but the input has ended")
        if message is None:
            return
        heard = read(line or b"")
        why = differs(message, heard, set(free or ()))
        if why:
            exit_with_error(f"expected {message!r}, but received {heard!r}: {why}")
        id_ = member(message, "id")
        if id_ is not None:
            self.ids[json.dumps(id_)] = member(heard, "id")

    def until_closed(self) -> None:
        """Wait for the end of the input."""
        while self.line() is not None:
            pass

    def hang(self, seconds: float | None = None) -> None:
        """Wait."""
        until = None if seconds is None else time.monotonic() + seconds
        while until is None or time.monotonic() < until:
            time.sleep(3600 if until is None else max(0.0, until - time.monotonic()))

    def ignore(self, signals: list[str]) -> None:
        """Ignore signals."""
        for name in signals:
            signal.signal(getattr(signal, name), signal.SIG_IGN)

    def leak(self, note: str = "", *, holds_pipes: bool = False) -> None:
        """Start a process that stays behind."""
        ready, tell = os.pipe()
        if os.fork() == 0:
            os.setsid()
            self.ignore(["SIGTERM", "SIGINT", "SIGHUP"])
            if note:
                Path(note).write_text(str(os.getpid()))
            os.write(tell, b".")
            if not holds_pipes:
                os.closerange(0, 256)
            self.hang()
        os.read(ready, 1)
        os.close(ready)
        os.close(tell)

    def close(self, stream: int) -> None:
        """Close a stream."""
        os.close(stream)

    def exit(self, code: int = 0) -> None:
        """Exit."""
        os._exit(code)

    def line(self) -> bytes | None:
        """Return the next line of the input; None at its end."""
        while b"\n" not in self.heard:
            data = os.read(0, 1 << 16)
            if not data:
                return None
            self.heard += data
        line, _, self.heard = self.heard.partition(b"\n")
        return line

    def with_id(self, text: bytes) -> bytes:
        """Replace the recorded id by the one that was received."""
        message = read(text)
        recorded = json.dumps(member(message, "id"))
        if recorded not in self.ids or member(message, "method") is not None:
            return text
        message["id"] = self.ids[recorded]
        return json.dumps(message).encode() + b"\n"


def put(stream: int, data: bytes) -> None:
    """Write all of it; exit if there is no reader any more."""
    try:
        while data:
            data = data[os.write(stream, data) :]
    except BrokenPipeError:
        os._exit(0)


def exit_with_error(why: str) -> None:
    """Report an error and exit."""
    put(2, f"the player {why}\n".encode())
    os._exit(WRONG)


def read(line: bytes) -> Any:
    """Return the JSON of a line, or the line itself if it is not JSON."""
    try:
        return json.loads(line)
    except ValueError:
        return repr(line)


def member(message: Any, name: str) -> Any:
    """Return a member of a message; None if it has none."""
    return cast("dict[str, Any]", message).get(name) if isinstance(message, dict) else None


def differs(wanted: Any, heard: Any, free: set[str], where: str = "it") -> str:
    """Return the first difference from the wanted value, or ""."""
    if type(wanted) is not type(heard):
        return f"{where} is {heard!r} instead of {wanted!r}"
    if isinstance(wanted, dict):
        return differs_within(cast("dict[str, Any]", wanted), heard, free, where)
    if isinstance(wanted, list):
        return differs_along(cast("list[object]", wanted), heard, free, where)
    return "" if wanted == heard else f"{where} is {heard!r} instead of {wanted!r}"


def differs_along(wanted: list[object], heard: list[object], free: set[str], where: str) -> str:
    """Return the first difference between two lists, or ""."""
    if len(wanted) != len(heard):
        return f"{where} has {len(heard)} items instead of {len(wanted)}"
    found = [differs(a, b, free, f"{where}[]") for a, b in zip(wanted, heard, strict=True)]
    return next(filter(None, found), "")


def differs_within(
    wanted: dict[str, Any], heard: dict[str, Any], free: set[str], where: str
) -> str:
    """Return the first missing or different member, or ""."""
    for key, value in wanted.items():
        if key in free:
            continue
        if key not in heard:
            return f"{where} has no {key!r}"
        why = differs(value, heard[key], free, f"{where}.{key}")
        if why:
            return why
    return ""


if __name__ == "__main__":
    PlaybookPlayer().play(json.loads(Path(sys.argv[1]).read_bytes()))
