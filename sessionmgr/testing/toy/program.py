"""Program of the toy agent: executes the orders in its prompt, and reports in JSON lines.

A prompt is a list of orders, separated by `;`:

    say TEXT          write a message, word by word
    use NAME          call a tool
    ask NAME          ask whether a tool may be used, and use it if so
    wait SECONDS      be silent; a cancel ends that
    deaf SECONDS      be silent, and read no input
    fail TEXT         end the turn with an error
    exit CODE         end the process
    print TEXT        write a line, which need not be a frame
    complain TEXT     write a line to stderr

Any other order is written as a message. This file needs only the standard library.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from typing import Any


class TurnCancelledError(Exception):
    """The turn was cancelled."""


class ToyAgent:
    """Agent with one session at a time, and one turn at a time."""

    def __init__(self) -> None:
        self.heard = b""
        self.more: list[str] = []
        self.count = 0

    def serve(self) -> None:
        """Serve until the input ends."""
        while True:
            message = self.next(None)
            if message["type"] == "open":
                session = message.get("session") or f"toy-{os.getpid()}-{time.monotonic_ns()}"
                write_frame("hello", session=session)
            elif message["type"] == "say":
                self.turn(message["text"])
            elif message["type"] == "more":
                write_frame("took", id=message["id"], taken=False)

    def next(self, seconds: float | None) -> dict[str, Any]:
        """Return the next message; raise TimeoutError after `seconds` without one."""
        until = None if seconds is None else time.monotonic() + seconds
        while b"\n" not in self.heard:
            left = None if until is None else max(0.0, until - time.monotonic())
            if not select.select([0], [], [], left)[0]:
                raise TimeoutError
            data = os.read(0, 1 << 16)
            if not data:
                sys.exit(0)
            self.heard += data
        line, _, self.heard = self.heard.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def turn(self, prompt: str) -> None:
        """Execute a prompt, and the messages that are added to it."""
        self.more = [prompt]
        try:
            while self.more:
                for order in self.more.pop(0).split(";"):
                    self.handle_messages(0)
                    verb, _, rest = order.strip().partition(" ")
                    if verb == "fail":
                        write_frame("turn_ended", reason="error", error=rest or "it failed")
                        return
                    self.run_order(verb, rest, order.strip())
                self.handle_messages(0)
        except TurnCancelledError:
            write_frame("turn_ended", reason="cancelled")
            return
        write_frame("tokens", input=len(prompt), output=self.count)
        write_frame("turn_ended", reason="done")

    def handle_messages(self, seconds: float) -> None:
        """Handle the messages to a running turn, for a number of seconds."""
        until = time.monotonic() + seconds
        while True:
            try:
                self.handle_message(self.next(max(0.0, until - time.monotonic())))
            except TimeoutError:
                return

    def handle_message(self, message: dict[str, Any]) -> None:
        """Handle one message to a running turn."""
        if message["type"] == "cancel":
            raise TurnCancelledError
        if message["type"] == "more":
            self.more.append(message["text"])
            write_frame("took", id=message["id"], taken=True)

    def run_order(self, verb: str, rest: str, order: str) -> None:
        """Execute one order."""
        self.count += 1
        match verb:
            case "use":
                self.use(rest, {"n": self.count})
            case "ask":
                self.ask(rest)
            case "wait":
                self.handle_messages(float(rest))
            case "deaf":
                time.sleep(float(rest))
            case "exit":
                os._exit(int(rest))
            case "print":
                print(rest, flush=True)  # noqa: T201
            case "complain":
                print(rest, file=sys.stderr, flush=True)  # noqa: T201
            case _:
                self.say(rest if verb == "say" else order)

    def say(self, text: str) -> None:
        """Write a message, word by word."""
        message = f"m{self.count}"
        for place, word in enumerate(text.split(" ")):
            write_frame("text_delta", text=f" {word}" if place else word, message=message)
        write_frame("text", text=text, message=message)

    def use(self, name: str, tool_input: Any) -> None:
        """Call a tool."""
        write_frame("tool_began", id=f"t{self.count}", name=name, input=tool_input)
        write_frame("tool_ended", id=f"t{self.count}", ok=True, output=f"{name} is done")

    def ask(self, name: str) -> None:
        """Ask whether a tool may be used; handle other messages meanwhile."""
        id_ = f"q{self.count}"
        write_frame("question", id=id_, name=name, input={"n": self.count}, effect="command")
        while (message := self.next(None)).get("id") != id_:
            self.handle_message(message)
        if message["allow"]:
            self.use(name, message.get("input", {"n": self.count}))
        else:
            self.say(f"not allowed: {message.get('reason') or 'no reason'}")


def write_frame(kind: str, **fields: Any) -> None:
    """Write one frame."""
    print(json.dumps({"type": kind, **fields}), flush=True)  # noqa: T201


if __name__ == "__main__":
    ToyAgent().serve()
