"""The dialect of an app-server, for a player that replaces it."""

import json
from typing import Final

from sessionmgr.testing.player import Dialect, ExpectStep, WriteStep

THREAD: Final = "00000000-0000-4000-8000-000000000001"


def _answer(number: int, result: object) -> WriteStep:
    return WriteStep(json.dumps({"id": number, "result": result}).encode() + b"\n")


def _notice(method: str, **params: object) -> bytes:
    message = {"method": method, "params": {"threadId": THREAD, **params}}
    return json.dumps(message, ensure_ascii=False).encode() + b"\n"


SANDBOX: Final[dict[str, object]] = {
    "type": "workspaceWrite",
    "writableRoots": [],
    "networkAccess": False,
    "excludeSlashTmp": False,
    "excludeTmpdirEnvVar": False,
}
OPENED: Final = {
    "thread": {"id": THREAD},
    "model": "gpt-5.5",
    "approvalPolicy": "on-request",
    "sandbox": {"type": "readOnly", "networkAccess": False},
}
SETTLED: Final[dict[str, object]] = {"approvalPolicy": "on-request", "sandboxPolicy": SANDBOX}


def _word(text: str) -> bytes:
    return _notice("item/agentMessage/delta", turnId="t", itemId="m", delta=text)


CODEX = Dialect(
    opening=(
        ExpectStep({"method": "initialize"}),
        _answer(1, {"userAgent": "sessionmgr/0.169.0 (x)"}),
        ExpectStep({"method": "initialized"}),
        ExpectStep({"method": "account/read"}),
        _answer(2, {"account": None}),
        ExpectStep({"method": "config/read"}),
        _answer(3, {"config": {}}),
        ExpectStep({"method": "thread/start"}),
        _answer(4, OPENED),
        ExpectStep({"method": "thread/settings/update"}),
        _answer(5, {}),
        WriteStep(_notice("thread/settings/updated", threadSettings=SETTLED)),
        ExpectStep({"method": "turn/start"}),
        _answer(6, {"turn": {"id": "t"}}),
    ),
    word=_word,
    end=_notice("turn/completed", turn={"id": "t", "status": "completed"}),
)
