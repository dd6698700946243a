"""An MCP server without a process: function tools, served over the provider's own connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sessionmgr.adapter.kit.tool import FunctionTool, FunctionTools
    from sessionmgr.model import Json

PROTOCOL: Final = "2025-06-18"
_NO_SUCH_METHOD: Final = -32601


async def serve(name: str, tools: FunctionTools, message: Json) -> dict[str, Json]:
    """Answer a message to the MCP server `name`."""
    if not isinstance(message, dict):
        return {"jsonrpc": "2.0", "id": None, "error": _error("it is no message")}
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
            answer["result"] = {"tools": [_described(each) for each in tools.tools]}
        case "tools/call":
            answer["result"] = await _call(tools, params if isinstance(params, dict) else {})
        case _:
            answer["error"] = _error(f"there is no method {method!r}")
    return answer


async def _call(tools: FunctionTools, params: dict[str, Json]) -> dict[str, Json]:
    outcome = await tools.call(params.get("name"), params.get("arguments"))
    content: list[Json] = [{"type": "text", "text": outcome.text}]
    return {"content": content, "isError": outcome.failed}


def _described(tool: FunctionTool) -> Json:
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": dict(tool.schema),
        "annotations": {"readOnlyHint": tool.reads_only},
    }


def _error(message: str) -> dict[str, Json]:
    return {"code": _NO_SUCH_METHOD, "message": message}
