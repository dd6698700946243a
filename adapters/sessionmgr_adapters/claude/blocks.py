"""What messages are made of: the kinds of blocks that the model's API knows."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from sessionmgr.model import Json


class TextBlock(msgspec.Struct, frozen=True, tag_field="type", tag="text"):
    """Some text."""

    text: str = ""


class ThinkingBlock(msgspec.Struct, frozen=True, tag_field="type", tag="thinking"):
    """What the model lets us know of its reasoning."""

    thinking: str = ""


class RedactedBlock(msgspec.Struct, frozen=True, tag_field="type", tag="redacted_thinking"):
    """Reasoning that is for the model's eyes only."""


class ToolUse(msgspec.Struct, frozen=True, tag_field="type", tag="tool_use"):
    """The model calls a tool."""

    id: str
    name: str
    input: Json = None


class ServerToolUse(msgspec.Struct, frozen=True, tag_field="type", tag="server_tool_use"):
    """The model has called a tool that runs where the model does."""

    id: str
    name: str
    input: Json = None


class ToolResult(msgspec.Struct, frozen=True, tag_field="type", tag="tool_result"):
    """What came of a tool call."""

    tool_use_id: str
    content: Json = None
    is_error: bool | None = None


class ServerToolResult(msgspec.Struct, frozen=True, tag_field="type", tag="web_search_tool_result"):
    """What came of a tool that runs where the model does."""

    tool_use_id: str
    content: Json = None


class ImageBlock(msgspec.Struct, frozen=True, tag_field="type", tag="image"):
    """An image, which is not shown."""


class DocumentBlock(msgspec.Struct, frozen=True, tag_field="type", tag="document"):
    """A document, which is not shown."""


Block: TypeAlias = (
    TextBlock
    | ThinkingBlock
    | RedactedBlock
    | ToolUse
    | ServerToolUse
    | ToolResult
    | ServerToolResult
    | ImageBlock
    | DocumentBlock
)
