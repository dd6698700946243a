"""The dialect of Amp, for a player that replaces it: written by hand from the documented schema."""

import json
from typing import Final

from sessionmgr.testing.player import Dialect, ExpectStep, WriteStep

THREAD: Final = "T-00000000-0000-4000-8000-000000000001"


def line(**message: object) -> bytes:
    """Return a message of Amp as a line."""
    return json.dumps({**message, "session_id": THREAD}, ensure_ascii=False).encode() + b"\n"


def assistant(*blocks: dict[str, object], stop: str | None = None) -> bytes:
    """Return a message of the model as a line."""
    usage = {"input_tokens": 5, "output_tokens": 2, "service_tier": "standard"}
    message = {"type": "message", "role": "assistant", "content": blocks, "usage": usage}
    return line(type="assistant", message={**message, "stop_reason": stop}, parent_tool_use_id=None)


def user(*blocks: dict[str, object]) -> bytes:
    """Return a message to the model as a line."""
    return line(type="user", message={"role": "user", "content": blocks}, parent_tool_use_id=None)


def text(words: str, stop: str | None = None) -> bytes:
    """Return a message of the model that is a text, as a line."""
    return assistant({"type": "text", "text": words}, stop=stop)


INIT: Final = line(
    type="system",
    subtype="init",
    cwd="/work",
    tools=["Bash", "Read"],
    mcp_servers=[],
    agent_mode="medium",
)
RESULT: Final = line(
    type="result", subtype="success", duration_ms=12, is_error=False, num_turns=1, result=""
)
AMP: Final = Dialect(opening=(ExpectStep({"type": "user"}), WriteStep(INIT)), word=text, end=RESULT)
