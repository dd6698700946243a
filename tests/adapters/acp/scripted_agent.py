"""An agent over ACP for tests of the client: a program that follows the orders in its prompts."""

import json
import sys
import threading
from typing import Any, Final

PERMISSION: Final = 1000
waiting: dict[int, Any] = {}
lock = threading.Lock()


def send(**message: Any) -> None:
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def say(session: str, text: str) -> None:
    content = {"type": "text", "text": text}
    update = {"sessionUpdate": "agent_message_chunk", "content": content}
    send(method="session/update", params={"sessionId": session, "update": update})


def prompt(id: int, params: dict[str, Any]) -> None:
    session, said = params["sessionId"], params["prompt"][0]["text"]
    for order in said.split(";"):
        verb, _, rest = order.strip().partition(" ")
        match verb:
            case "say":
                say(session, rest)
            case "many":
                for number in range(int(rest)):
                    say(session, f"{number} ")
            case "ask":
                waiting[PERMISSION + id] = (id, session)
                options = [
                    {"optionId": kind, "name": kind, "kind": kind}
                    for kind in rest.split() or ("allow_always", "allow_once", "reject_once")
                ]
                send(
                    id=PERMISSION + id,
                    method="session/request_permission",
                    params={
                        "sessionId": session,
                        "toolCall": {"toolCallId": "call-1", "title": "Try", "kind": "edit"},
                        "options": options,
                    },
                )
                return
            case "odd":
                send(method="session/update", params={"sessionId": session, "update": {"x": 1}})
            case "form":
                waiting[PERMISSION + id] = (id, session)
                send(
                    id=PERMISSION + id,
                    method=rest,
                    params={"sessionId": session, "mode": "form", "message": "?", "path": "/x"},
                )
                return
            case "wait":
                waiting[0] = id
                return
            case "deaf":
                return
            case "fail":
                send(id=id, error={"code": 429, "message": rest, "data": {"x": 1}})
                return
            case "exit":
                sys.stderr.write(rest + "\n")
                sys.exit(3)
            case _:
                raise SystemExit(f"unknown order {order!r}")
    send(id=id, result={"stopReason": "end_turn", "usage": {"inputTokens": 3}})


def answer(message: dict[str, Any]) -> None:
    """Handle an answer to a request of the agent: it is said, and the turn ends."""
    id, session = waiting.pop(message["id"])
    result: dict[str, Any] = message.get("result", {})
    error: dict[str, Any] = message.get("error", {})
    outcome: dict[str, Any] = result.get("outcome", {})
    said = outcome.get("optionId") or outcome.get("outcome")
    said = said or result.get("action") or error.get("code")
    say(session, str(said))
    reason = "cancelled" if said == "cancelled" else "end_turn"
    send(id=id, result={"stopReason": reason})


def main() -> None:
    version = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    numbers = iter(range(1, 100))
    for line in sys.stdin:
        message = json.loads(line)
        id, params = message.get("id"), message.get("params", {})
        match message.get("method"):
            case None:
                answer(message)
            case "initialize" if version == 0:
                send(id=id, error={"code": -32603, "message": "not today"})
            case "initialize" if version == 2:
                send(
                    id=id,
                    result={
                        "protocolVersion": 2,
                        "info": {"name": "scripted", "version": "1"},
                        "capabilities": {},
                    },
                )
            case "initialize":
                send(
                    id=id,
                    result={
                        "protocolVersion": 1,
                        "agentInfo": {"name": "scripted", "version": "1"},
                        "agentCapabilities": {"loadSession": True},
                    },
                )
            case "session/new":
                send(id=id, result={"sessionId": f"s-{next(numbers)}"})
            case "session/load":
                say(params["sessionId"], "replayed")
                send(id=id, result={})
            case "session/prompt":
                prompt(id, params)
            case "session/cancel" if 0 in waiting:
                send(id=waiting.pop(0), result={"stopReason": "cancelled"})
            case "session/cancel":
                pass
            case "session/set_mode" | "authenticate":
                send(id=id, result={})
            case method:
                send(id=id, error={"code": -32601, "message": f"no {method}"})


if __name__ == "__main__":
    main()
