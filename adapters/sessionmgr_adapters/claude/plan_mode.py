"""Enforcement of plan mode: a run in plan mode changes nothing, whatever the user's rules allow.

sessionmgr denies the requests of Claude Code, so Claude Code must send requests: each rule of the
user that allows a call is replaced by a rule to ask. Where that is not sufficient (the user's hooks
may allow a call, or a sub-agent has its own mode), a hook of sessionmgr denies the call; no rule
and no other hook overrides it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessionmgr.adapter.kit import version_numbers
from sessionmgr.model import FailureKind
from sessionmgr_adapters.claude.functions import denial_reply
from sessionmgr_adapters.claude.tool_access import HARMLESS_TOOLS, tool_effect

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sessionmgr.model import Json
    from sessionmgr_adapters.claude.claude_process import ClaudeProcess
    from sessionmgr_adapters.claude.claude_run import ClaudeRun
    from sessionmgr_adapters.claude.functions import ClaudeFunctions

PLAN: Final = "plan"
ASKS_BELOW_SINCE: Final = (2, 1, 327)
"""The first version in which hooks of sub-agents allow nothing that requires a request."""
_ALWAYS: Final = ("Write", "Edit", "NotebookEdit", "mcp__*")
_DECIDING_HOOKS: Final = ("PreToolUse", "PermissionRequest")
"""Hooks that may allow a call."""


async def enforce_plan_mode(driver: ClaudeRun) -> None:
    """Make the process send a request before each change.

    Raises:
        ControlRefusedError: The process refused the settings.
    """
    kind, how = FailureKind.PERMISSION_REFUSED, "cannot enforce plan mode, because it refused"
    reply = await driver.request("get_settings", {}, kind, how)
    found = reply.get("effective") if isinstance(reply, dict) else None
    driver.process.denies_in_plan = not isinstance(found, dict) or _has_allowing_hook(found)
    settings: dict[str, Json] = {
        # Otherwise some versions let a model judge calls in plan mode, and send no request.
        "useAutoModeDuringPlan": False,
        "permissions": {"ask": [*_ALWAYS, *_rules_to_ask(found)]},
        "sandbox": {"autoAllowBashIfSandboxed": False},
    }
    await driver.request("apply_flag_settings", {"settings": settings}, kind, how)


def _has_allowing_hook(settings: dict[str, Json]) -> bool:
    hooks, plugins = settings.get("hooks"), settings.get("enabledPlugins")
    decides = isinstance(hooks, dict) and any(hooks.get(each) for each in _DECIDING_HOOKS)
    return decides or (isinstance(plugins, dict) and any(plugins.values()))


def _rules_to_ask(settings: Json) -> Iterable[str]:
    """Return the user's rules that allow more than reading."""
    match settings:
        case {"permissions": {"allow": list(allowed)}}:
            rules = [each for each in allowed if isinstance(each, str)]
        case _:
            rules = []
    return [
        each for each in rules if tool_effect(each.partition("(")[0]) not in {"read", "network"}
    ]


def is_hook_needed(event: Json, process: ClaudeProcess) -> bool:
    """Whether Claude Code might not send a request for a call that requires one."""
    version = version_numbers(process.version) or ()
    is_below = isinstance(event, dict) and event.get("agent_id") is not None
    return process.denies_in_plan or (is_below and version < ASKS_BELOW_SINCE)


def plan_verdict(event: Json, functions: ClaudeFunctions, *, denies: bool) -> dict[str, Json]:
    """Return the reply of the hook: deny calls for which Claude Code would not send a request."""
    match event:
        case {"tool_name": str(name), "permission_mode": str(mode)}:
            pass
        case _:
            name, mode = "an unnamed call", ""
    ours = functions.find_called(name)
    effect = tool_effect(name)
    is_asked = effect in {"edit", "command"} or name.startswith("mcp__")
    if (
        effect in {"read", "network"}
        or name in HARMLESS_TOOLS
        or (ours is not None and ours.reads_only)
        or (is_asked and mode == PLAN and not denies)
    ):
        return {}
    return denial_reply("the run is in plan mode: nothing may be changed")
