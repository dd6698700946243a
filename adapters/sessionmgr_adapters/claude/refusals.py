"""Why a run is not begun: what it wishes for that could only be left out, or done in part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessionmgr.adapter.kit.structured_output import schema_fault
from sessionmgr.model import PermissionMode
from sessionmgr_adapters.claude.allowed import server_name, unknown_tool
from sessionmgr_adapters.claude.functions import SERVER

if TYPE_CHECKING:
    from sessionmgr.adapter import RunContext, RunSpec
    from sessionmgr_adapters.claude.options import ClaudeOptions

EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")
"""The levels of effort; a model that lacks one thinks as hard as it can below that."""


def refusal(run: RunContext | RunSpec, options: ClaudeOptions) -> str | None:
    """Say why a run is not begun, naming the field; None if nothing is against it."""
    schema = schema_fault(run.schema)
    if schema is not None:
        return f"schema: {schema}"
    if options.allow_rules and run.permission.asked is PermissionMode.PLAN:
        return "options.allow_rules: a run that only plans is allowed nothing by rules"
    if run.effort is not None and run.effort not in EFFORTS:
        return f"effort: unknown level {run.effort!r}; Claude Code has {', '.join(EFFORTS)}"
    if options.tools and server_name(SERVER) in map(server_name, options.mcp_servers):
        return f"options.mcp_servers: {SERVER!r} is the name of the server of options.tools"
    return unknown_tool(run.tools_allowed, run.tools_denied, options)
