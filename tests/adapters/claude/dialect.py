"""Dialect of Claude Code, for a player that replaces it."""

import json
from typing import Final

from sessionmgr.testing.player import Dialect, ExpectStep, WriteStep

SESSION: Final = b"00000000-0000-4000-8000-000000000001"
HELLO: Final = (
    b'{"type":"control_response","response":{"subtype":"success","request_id":"initialize-1",'
    b'"response":{"claude_code_version":"2.1.327","current_permission_mode":"default",'
    b'"account":{"apiKeySource":"ANTHROPIC_API_KEY"}}}}\n'
)
INIT: Final = b'{"type":"system","subtype":"init","session_id":"%b"}\n' % SESSION
RESULT: Final = b'{"type":"result","subtype":"success","is_error":false}\n'
IDLE: Final = b'{"type":"system","subtype":"session_state_changed","state":"idle"}\n'


def _word(text: str) -> bytes:
    delta = b'{"type":"content_block_delta","delta":{"type":"text_delta","text":%b}}'
    event = delta % json.dumps(text, ensure_ascii=False).encode()
    return b'{"type":"stream_event","api_message_id":"m1","event":%b}\n' % event


CLAUDE = Dialect(
    opening=(
        ExpectStep({"type": "control_request", "request": {"subtype": "initialize"}}),
        WriteStep(HELLO),
        ExpectStep({"type": "user"}),
        WriteStep(INIT),
    ),
    word=_word,
    end=RESULT + IDLE,
)
