"""The toy agent: it does what its prompt says, and tells of it in JSON lines.

    python program.py

It reads and writes one JSON object a line; `frames.py` lists them. A prompt is a list of orders,
with `;` between them:

    say TEXT          write a message, word by word
    use NAME          call a tool
    ask NAME          ask whether a tool may be used, and use it if so
    wait SECONDS      be silent; a cancel ends that
    deaf SECONDS      be silent, and deaf
    fail TEXT         end the turn with an error
    exit CODE         be gone
    print TEXT        write a line that may be anything
    complain TEXT     write a line on stderr

Anything else is answered by itself. This file needs the standard library only.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from typing import Any, Final

END: Final = b""


class Cancelled(Exception):
    """The turn is to end."""


class Agent:
    """One session at a time, one turn at a time."""

    def __init__(self) -> None:
        self.heard = b""
        self.waiting: list[dict[str, Any]] = []
        self.more: list[str] = []
        self.count = 0

    def live(self) -> None:
        """Do as told, until nobody tells anything any more."""
        while True:
            message = self.next(None)
            if message["type"] == "open":
                session = message.get("session") or f"toy-{os.getpid()}-{time.monotonic_ns()}"
                tell("hello", session=session)
            elif message["type"] == "say":
                self.turn(message["text"])
            elif message["type"] == "more":
                tell("took", id=message["id"], taken=False)

    def next(self, seconds: float | None) -> dict[str, Any]:
        """Return the next message; after `seconds` without one, TimeoutError."""
        if self.waiting:
            return self.waiting.pop(0)
        until = None if seconds is None else time.monotonic() + seconds
        while b"\n" not in self.heard:
            left = None if until is None else max(0.0, until - time.monotonic())
            if not select.select([0], [], [], left)[0]:
                raise TimeoutError
            data = os.read(0, 1 << 16)
            if data == END:
                sys.exit(0)
            self.heard += data
        line, _, self.heard = self.heard.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def turn(self, prompt: str) -> None:
        """Follow a prompt, and what is added to it meanwhile."""
        self.more = [prompt]
        try:
            while self.more:
                for order in self.more.pop(0).split(";"):
                    self.listen(0)
                    error = self.obey(order.strip())
                    if error is not None:
                        tell("turn_ended", reason="error", error=error)
                        return
                self.listen(0)
        except Cancelled:
            tell("turn_ended", reason="cancelled")
            return
        tell("tokens", input=len(prompt), output=self.count)
        tell("turn_ended", reason="done")

    def listen(self, seconds: float) -> None:
        """Hear what is said in the middle of a turn."""
        until = time.monotonic() + seconds
        while True:
            try:
                message = self.next(max(0.0, until - time.monotonic()))
            except TimeoutError:
                return
            self.hear(message)

    def hear(self, message: dict[str, Any]) -> None:
        """Take in one message in the middle of a turn."""
        if message["type"] == "cancel":
            raise Cancelled
        if message["type"] == "more":
            self.more.append(message["text"])
            tell("took", id=message["id"], taken=True)

    def obey(self, order: str) -> str | None:
        """Follow one order; return an error if that is the end of the turn."""
        verb, _, rest = order.partition(" ")
        match verb:
            case "use":
                self.use(rest, {"n": self.count})
            case "ask":
                self.ask(rest)
            case "wait":
                self.listen(float(rest))
            case "deaf":
                time.sleep(float(rest))
            case "fail":
                return rest or "it failed"
            case "exit":
                sys.stdout.flush()
                os._exit(int(rest))
            case "print":
                print(rest, flush=True)  # noqa: T201
            case "complain":
                print(rest, file=sys.stderr, flush=True)  # noqa: T201
            case "say":
                self.say(rest)
            case _:
                self.say(order)
        return None

    def say(self, text: str) -> None:
        """Write a message, word by word."""
        self.count += 1
        message = f"m{self.count}"
        for place, word in enumerate(text.split(" ")):
            tell("text_delta", text=f" {word}" if place else word, message=message)
        tell("text", text=text, message=message)

    def use(self, name: str, tool_input: Any) -> None:
        """Call a tool."""
        self.count += 1
        id_ = f"t{self.count}"
        tell("tool_began", id=id_, name=name, input=tool_input)
        tell("tool_ended", id=id_, ok=True, output=f"{name} is done")

    def ask(self, name: str) -> None:
        """Ask whether a tool may be used; whatever else is said meanwhile is heard."""
        self.count += 1
        id_ = f"q{self.count}"
        tell("question", id=id_, name=name, input={"n": self.count}, effect="command")
        while True:
            message = self.next(None)
            if message["type"] == "answer" and message["id"] == id_:
                break
            self.hear(message)
        if message["allow"]:
            self.use(name, message.get("input", {"n": self.count}))
        else:
            self.say(f"not allowed: {message.get('reason') or 'no reason'}")


def tell(kind: str, **fields: Any) -> None:
    """Write one frame."""
    print(json.dumps({"type": kind, **fields}), flush=True)  # noqa: T201


if __name__ == "__main__":
    Agent().live()
