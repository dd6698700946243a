"""Functions of the caller, served as an MCP server."""

from __future__ import annotations

from sessionmgr.model import (
    Json,
)
from sessionmgr_adapters.claude import ClaudeTool
from sessionmgr_adapters.claude.functions import ClaudeFunctions
from tests.adapters.claude.run_contexts import add


async def test_tools_are_served_as_by_a_server() -> None:
    functions = ClaudeFunctions((ClaudeTool("add", "Add.", add),))
    hello = await functions.serve({"id": 0, "method": "initialize"})
    assert "protocolVersion" in str(hello["result"])
    assert (await functions.serve({"id": 1, "method": "ping"}))["result"] == {}
    assert "Add." in str(await functions.serve({"id": 2, "method": "tools/list"}))
    call: Json = {"id": 3, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1}}}
    assert '["a"]' in str(await functions.serve(call))
    none: Json = {"id": 4, "method": "tools/call", "params": {"name": "none"}}
    assert "unknown tool 'none'" in str(await functions.serve(none))
    assert "unknown method" in str(await functions.serve({"id": 5, "method": "x"}))
    assert (await functions.serve({"method": "notifications/initialized"}))["result"] == {}
    assert "error" in await functions.serve("no message")
