"""Why a run is not begun: what it wishes for that could only be left out, or done in part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessionmgr.model import PermissionMode
from sessionmgr.provider.structured import schema_fault
from sessionmgr_adapters.claude.allowed import unknown_tool

if TYPE_CHECKING:
    from sessionmgr.provider import RunContext
    from sessionmgr_adapters.claude.options import ClaudeOptions


def refusal(run: RunContext, options: ClaudeOptions) -> str | None:
    """Say why a run is not begun, naming the field; None if nothing is against it."""
    schema = schema_fault(run.schema)
    if schema is not None:
        return f"schema: {schema}"
    if options.allow_rules and run.permission.asked is PermissionMode.PLAN:
        return "options.allow_rules: a run that only plans is allowed nothing by rules"
    return unknown_tool(run.tools_allowed, run.tools_denied, options)
