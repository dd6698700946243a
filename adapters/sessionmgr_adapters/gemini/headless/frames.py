"""The lines that `gemini -o stream-json` prints, as frames."""

from __future__ import annotations

from functools import partial
from typing import Final, TypeAlias

import msgspec

from sessionmgr.model import Json
from sessionmgr.wire import NoFrame, decode_frames

SUCCESS: Final = "success"
ERROR: Final = "error"
DENIED: Final = "policy_violation"
"""The type of a tool's error if a rule denied the call."""


class InitFrame(msgspec.Struct, frozen=True, tag="init"):
    """The session, before the prompt is sent."""

    session_id: str
    model: str | None = None


class MessageFrame(msgspec.Struct, frozen=True, tag="message"):
    """The prompt, or a piece of the model's text."""

    role: str
    content: str = ""
    timestamp: str = ""


class ToolUseFrame(msgspec.Struct, frozen=True, tag="tool_use"):
    """Call of a tool."""

    tool_name: str
    tool_id: str
    parameters: Json = None


class HeadlessError(msgspec.Struct, frozen=True):
    """Error of a tool or of the whole run."""

    type: str = ""
    message: str = ""


class ToolResultFrame(msgspec.Struct, frozen=True, tag="tool_result"):
    """End of a call; Gemini does not report the exit code of a command."""

    tool_id: str
    status: str = SUCCESS
    output: Json = None
    error: HeadlessError | None = None


class NoticeFrame(msgspec.Struct, frozen=True, tag="error"):
    """Warning, or the error with which the run is about to end."""

    message: str = ""
    severity: str = ERROR


class HeadlessStats(msgspec.Struct, frozen=True):
    """Tokens of all requests of the run; `input_tokens` are those in the cache, too."""

    total_tokens: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached: int = 0


class OutcomeFrame(msgspec.Struct, frozen=True, tag="result"):
    """The last frame of a run. A run without one has failed."""

    status: str
    error: HeadlessError | None = None
    stats: HeadlessStats | None = None


HeadlessFrame: TypeAlias = (
    InitFrame | MessageFrame | ToolUseFrame | ToolResultFrame | NoticeFrame | OutcomeFrame
)
AnyHeadlessFrame: TypeAlias = HeadlessFrame | NoFrame

decode_lines: Final = partial(
    decode_frames, decoder=msgspec.json.Decoder[HeadlessFrame](HeadlessFrame)
)
"""Decodes the lines of a read."""
