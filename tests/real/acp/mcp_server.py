"""A small MCP server on stdio with one tool, which repeats a word in capitals."""

import json
import sys
from typing import Any

TOOL = "shout_word"


def answer(message: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request, or its refusal."""
    given: dict[str, Any] = message.get("params", {})
    said: dict[str, Any]
    match message["method"]:
        case "initialize":
            info = {"name": "lab", "version": "1"}
            version = given["protocolVersion"]
            said = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            schema = {"type": "object", "properties": {"word": {"type": "string"}}}
            said = {"tools": [{"name": TOOL, "description": "Shout.", "inputSchema": schema}]}
        case "tools/call":
            word = str(given["arguments"]["word"])
            said = {"content": [{"type": "text", "text": word.upper()}]}
        case _:
            return {"error": {"code": -32601, "message": "unknown method"}}
    return {"result": said}


if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked:
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer(asked)}), flush=True)
