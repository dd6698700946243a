"""An agent over ACP that answers at once: its costs are those of its client.

A prompt is the number of pieces of its answer. It needs only the standard library.
"""

import json
import sys
from typing import Any


def _line(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def _piece(session: str) -> bytes:
    content = {"type": "text", "text": "word "}
    update = {"sessionUpdate": "agent_message_chunk", "content": content}
    return _line(method="session/update", params={"sessionId": session, "update": update})


def _answer(method: str, params: dict[str, Any]) -> tuple[bytes, dict[str, Any]]:
    """Return the updates and the answer to a request."""
    if method == "initialize":
        return b"", {
            "protocolVersion": 1,
            "agentInfo": {"name": "fast", "version": "1"},
            "agentCapabilities": {"loadSession": True},
        }
    if method == "session/new":
        return b"", {"sessionId": "session-1"}
    if method == "session/prompt":
        count = int(params["prompt"][0]["text"])
        return _piece(params["sessionId"]) * count, {"stopReason": "end_turn"}
    return b"", {}


def main() -> None:
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        updates, answer = _answer(message["method"], message.get("params", {}))
        sys.stdout.buffer.write(updates + _line(id=message["id"], result=answer))
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
