"""The dialect of the wire, for a player that replaces Kimi."""

import json
from typing import Final

from sessionmgr.testing.player import Dialect, ExpectStep, WriteStep


def _line(**message: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode() + b"\n"


def event(kind: str, **payload: object) -> bytes:
    """Return an event as a line."""
    return _line(method="event", params={"type": kind, "payload": payload})


KIMI: Final = Dialect(
    opening=(
        ExpectStep({"method": "initialize", "id": "1:initialize"}),
        WriteStep(_line(id="1:initialize", result={"server": {"version": "1.50.0"}})),
        ExpectStep({"method": "set_plan_mode", "id": "2:set_plan_mode"}),
        WriteStep(_line(id="2:set_plan_mode", result={"status": "ok", "plan_mode": False})),
        ExpectStep({"method": "prompt", "id": "0:prompt"}),
        WriteStep(event("TurnBegin", user_input="")),
    ),
    word=lambda text: event("ContentPart", type="text", text=text),
    end=_line(id="0:prompt", result={"status": "finished"}),
)
