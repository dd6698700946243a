"""The dialect of an agent over ACP, for a player that replaces it."""

import json
from typing import Final

from sessionmgr.model import Json
from sessionmgr.testing.player import Dialect, ExpectStep, WriteStep, line

SESSION: Final = "session-1"
HELLO: Final[Json] = {
    "protocolVersion": 1,
    "agentInfo": {"name": "player", "version": "1.0.0"},
    "agentCapabilities": {"loadSession": True},
}


def _answer(number: int, result: Json) -> WriteStep:
    return WriteStep(line({"jsonrpc": "2.0", "id": number, "result": result}))


def _word(text: str) -> bytes:
    update = {
        "sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": text},
    }
    params = {"sessionId": SESSION, "update": update}
    message = {"jsonrpc": "2.0", "method": "session/update", "params": params}
    return json.dumps(message, ensure_ascii=False).encode() + b"\n"


ACP: Final = Dialect(
    opening=(
        ExpectStep({"method": "initialize"}),
        _answer(1, HELLO),
        ExpectStep({"method": "session/new"}),
        _answer(2, {"sessionId": SESSION}),
        ExpectStep({"method": "session/prompt"}),
    ),
    word=_word,
    end=line({"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "end_turn"}}),
)
