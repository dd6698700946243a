"""Function tools: functions of the caller that a model may call, also as an MCP server.

The MCP server has no process: it answers messages that come over the provider's own connection.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from sessionmgr.adapter import Allow, Decision
from sessionmgr.adapter.kit.json_rpc_caller import NO_SUCH_METHOD
from sessionmgr.model import Json, PermissionMode

if TYPE_CHECKING:
    from sessionmgr.adapter import ApprovalRequest, RunContext

log: Final = logging.getLogger("sessionmgr.adapter")
PROTOCOL: Final = "2025-06-18"


@dataclass(frozen=True)
class FunctionTool:
    """Function that the model may call, with an object that is valid against `schema`.

    The model gets the result: a string as it is, anything else as JSON. An exception fails the tool
    call, and the model gets its text. By passing a tool the caller allows its calls; in a run in
    plan mode this holds only for tools that read.
    """

    name: str
    description: str
    call: Callable[[dict[str, Json]], Awaitable[Json]]
    schema: Mapping[str, Json] = field(default_factory=lambda: {"type": "object"})
    reads_only: bool = False
    """Whether it changes nothing, so that it may be called in plan mode."""


_PYTHON: Final[dict[str, object]] = {"type": "object", "description": "a Python object"}
AnyTool = Annotated[FunctionTool, msgspec.Meta(extra_json_schema=_PYTHON)]


def tool_description(tool: FunctionTool) -> dict[str, Json]:
    """Return the description of a tool for a model, in the format of MCP."""
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": dict(tool.schema),
    }


class ToolOutcome(msgspec.Struct, frozen=True):
    """Result of a call, for the model."""

    text: str
    failed: bool = False


@dataclass(frozen=True)
class FunctionTools:
    """Functions that a model may call."""

    tools: tuple[FunctionTool, ...] = ()

    def find_tool(self, name: Json) -> FunctionTool | None:
        """Return the tool with a name; None if there is none."""
        return next((each for each in self.tools if each.name == name), None)

    async def decide(
        self, run: RunContext, tool: FunctionTool | None, question: ApprovalRequest
    ) -> Decision:
        """Decide whether a tool may be called: a function of the caller is allowed.

        In plan mode functions that write need approval; in all modes tools of others do (None).
        """
        is_plan = run.permission.asked is PermissionMode.PLAN
        if tool is not None and (tool.reads_only or not is_plan):
            return Allow()
        return await run.ask(question)

    async def call(self, name: Json, arguments: Json) -> ToolOutcome:
        """Call a tool, and return the result for the model."""
        tool = self.find_tool(name)
        if tool is None:
            return ToolOutcome(f"unknown tool {name!r}", failed=True)
        try:
            found = await tool.call(arguments if isinstance(arguments, dict) else {})
            text = found if isinstance(found, str) else msgspec.json.encode(found).decode()
        except Exception as error:  # the caller's function: its failure is a result
            log.warning("A function tool failed. tool=%s", tool.name, exc_info=True)
            return ToolOutcome(f"{type(error).__name__}: {error}", failed=True)
        return ToolOutcome(text)


# --- the MCP server ------------------------------------------------------------------------------


async def serve_mcp_message(name: str, tools: FunctionTools, message: Json) -> dict[str, Json]:
    """Answer a message to the MCP server `name`."""
    if not isinstance(message, dict):
        return {"jsonrpc": "2.0", "id": None, "error": _error_reply("not a message")}
    answer: dict[str, Json] = {"jsonrpc": "2.0"}
    if "id" not in message:
        return {**answer, "result": {}}  # a notification
    answer["id"] = message["id"]
    method, params = message.get("method"), message.get("params")
    match method:
        case "initialize":
            answer["result"] = {
                "protocolVersion": PROTOCOL,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": name, "version": "1"},
            }
        case "ping":
            answer["result"] = {}
        case "tools/list":
            answer["result"] = {"tools": [_tool_list(each) for each in tools.tools]}
        case "tools/call":
            answer["result"] = await _call_tool(tools, params if isinstance(params, dict) else {})
        case _:
            answer["error"] = _error_reply(f"unknown method {method!r}")
    return answer


async def _call_tool(tools: FunctionTools, params: dict[str, Json]) -> dict[str, Json]:
    outcome = await tools.call(params.get("name"), params.get("arguments"))
    content: list[Json] = [{"type": "text", "text": outcome.text}]
    return {"content": content, "isError": outcome.failed}


def _tool_list(tool: FunctionTool) -> Json:
    return {**tool_description(tool), "annotations": {"readOnlyHint": tool.reads_only}}


def _error_reply(message: str) -> dict[str, Json]:
    return {"code": NO_SUCH_METHOD, "message": message}
