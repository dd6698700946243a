"""A child that replaces an agent: it answers requests, and sends a file for each prompt.

    python player.py claude|codex FILE ...

It needs only the standard library. Requests may come in any order.
"""

import json
import shutil
import sys
from collections.abc import Callable
from typing import Any, Final

SESSION: Final = "9480d611-136c-4184-9eb5-c9d8b47aa49a"
THREAD: Final = "01a1f4d4-673c-7be0-a7cc-7de30b3b21a4"
TURN: Final = "01a1f4d4-6758-7d82-ac77-c5f6a71ac192"
READ_ONLY: Final = {"type": "readOnly", "networkAccess": False}
SETTINGS: Final = {"approvalPolicy": "never", "sandboxPolicy": READ_ONLY}
RESULTS: Final[dict[str, object]] = {
    "initialize": {"userAgent": "sessionmgr/0.169.0 (x)"},
    "account/read": {"account": None},
    "config/read": {"config": {}},
    "thread/loaded/list": {"data": [THREAD]},
    "thread/start": {
        "thread": {"id": THREAD},
        "model": "gpt-5.5",
        "approvalPolicy": "never",
        "sandbox": READ_ONLY,
    },
    "turn/start": {"turn": {"id": TURN}},
}


def write(message: object) -> None:
    """Write a line."""
    sys.stdout.buffer.write(json.dumps(message).encode() + b"\n")
    sys.stdout.buffer.flush()


def send(file: str) -> None:
    """Write a file as fast as it is read."""
    with open(file, "rb") as lines:  # noqa: PTH123  # nothing more is imported than is needed
        shutil.copyfileobj(lines, sys.stdout.buffer, 1 << 16)
    sys.stdout.buffer.flush()


def claude(request: dict[str, Any], file: str) -> None:
    """Answer a request as Claude Code does."""
    if request["type"] == "control_request":
        response = {"claude_code_version": "2.1.327", "current_permission_mode": "default"}
        answer = {"subtype": "success", "request_id": request["request_id"], "response": response}
        write({"type": "control_response", "response": answer})
    elif request["type"] == "user":
        write({"type": "system", "subtype": "init", "session_id": SESSION})
        send(file)
        write({"type": "result", "subtype": "success", "is_error": False, "session_id": SESSION})
        write({"type": "system", "subtype": "session_state_changed", "state": "idle"})


def codex(request: dict[str, Any], file: str) -> None:
    """Answer a request as the app-server of Codex does."""
    if "id" not in request:
        return
    write({"id": request["id"], "result": RESULTS.get(request["method"], {})})
    if request["method"] == "thread/settings/update":
        write(_notice("thread/settings/updated", threadSettings=SETTINGS))
    if request["method"] == "turn/start":
        send(file)
        write(_notice("turn/completed", turn={"id": TURN, "status": "completed"}))


def _notice(method: str, **params: object) -> dict[str, object]:
    return {"method": method, "params": {"threadId": THREAD, **params}}


def main() -> None:
    """Answer until the input ends."""
    agents: dict[str, Callable[[dict[str, Any], str], None]] = {"claude": claude, "codex": codex}
    agent, file = sys.argv[1:3]  # the agent's own arguments follow
    for line in sys.stdin.buffer:
        agents[agent](json.loads(line), file)


if __name__ == "__main__":
    main()
