"""The permission modes in Gemini's terms, and the policy rules that keep a run to its mode.

Without a terminal Gemini never asks. It removes the tools that would need an approval, and allows
the model to enter and to leave plan mode by itself; leaving it switches to `yolo`. So a run gets a
policy file of the highest tier, which denies that in every mode that allows less.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sessionmgr.adapter import MappedMode, PermissionMap
from sessionmgr.adapter.kit import PROTECTED_DIRECTORIES, PROTECTED_FILES
from sessionmgr.model import Fidelity, Json, PermissionMode, encode_json

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT: Final = "default"
AUTO_EDIT: Final = "auto_edit"
PLAN: Final = "plan"
YOLO: Final = "yolo"

HEADLESS_PERMISSIONS: Final = PermissionMap(
    {
        PermissionMode.DEFAULT: MappedMode(DEFAULT, Fidelity.NARROWER, confined=False),
        PermissionMode.ACCEPT_EDITS: MappedMode(AUTO_EDIT, Fidelity.NARROWER, confined=False),
        PermissionMode.PLAN: MappedMode(PLAN, confined=False),
        PermissionMode.FULL_AUTO: MappedMode(YOLO, confined=False),
        PermissionMode.DANGEROUSLY_SKIP_PERMISSIONS: MappedMode(YOLO, confined=False),
    }
)

_MODE_TOOLS: Final = ("enter_plan_mode", "exit_plan_mode")
_WRITERS: Final = ("write_file", "replace")
_DENIED: Final[dict[str, tuple[str, ...]]] = {
    DEFAULT: _MODE_TOOLS,
    AUTO_EDIT: (*_MODE_TOOLS, "web_fetch"),
    PLAN: (
        *(*_MODE_TOOLS, *_WRITERS, "run_shell_command"),
        *("activate_skill", "save_memory", "mcp_*", "discovered_tool_*"),
    ),
    YOLO: (),
}
"""The tools that a run may not use, by Gemini's mode. The user's rules cannot allow them.

Gemini's own `auto_edit` fetches from the web without asking, but its `default` does not. Its `plan`
writes plans, to a directory that the project may choose.
"""

_PROTECTED: Final = "|".join(
    re.escape(each) for each in sorted({".gemini", *PROTECTED_DIRECTORIES, *PROTECTED_FILES})
)
_PROTECTED_PATH: Final = rf'"file_path":("|"[^"]*/)({_PROTECTED})[/"]'
"""The arguments of a call that writes a protected file, as Gemini matches them: JSON.

Gemini ignores patterns in which a group with a quantifier is repeated or optional.
"""

_TOOL: Final = re.compile(r"[\w.*-]+", re.ASCII)


def denied_tool_fault(tools: Sequence[str]) -> str | None:
    """Return what is wrong with the names of denied tools, if anything is."""
    for each in tools:
        if not _TOOL.fullmatch(each):
            return (
                f"tools_denied: {each!r} is not the name of a tool of Gemini; write a name such as "
                "'run_shell_command', or 'mcp_SERVER_*' for all tools of an MCP server"
            )
    return None


def policy_rules(mode: str, denied: Sequence[str]) -> str:
    """Return the policy file of a run as TOML; "" if it needs none."""
    names = [*dict.fromkeys((*_DENIED[mode], *denied))]
    rules = [_rule(names)] if names else []
    if mode == AUTO_EDIT:
        rules.append(_rule([*_WRITERS], _PROTECTED_PATH))
    return "\n".join(rules)


def _rule(tools: list[str], arguments: str | None = None) -> str:
    fields: dict[str, Json] = {"toolName": [*tools], "decision": "deny", "priority": 999}
    if arguments is not None:
        fields["argsPattern"] = arguments
    # A JSON string, number or list of strings is one of TOML, too.
    lines = [f"{name} = {encode_json(value).decode()}\n" for name, value in fields.items()]
    return f"[[rule]]\n{''.join(lines)}"
